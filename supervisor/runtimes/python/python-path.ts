/** Where the modules are that apps in Python import from us. */
import { fileURLToPath } from 'node:url';

/** Absolute path of a folder that is shipped as it is, beside `dist`: for `PYTHONPATH`, in tests and editors. */
export const PYTHON_PATH = fileURLToPath(new URL('../../../../worker/python', import.meta.url));
