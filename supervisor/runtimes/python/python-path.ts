/** Folder of the modules that apps in Python import from this package. */
import { fileURLToPath } from 'node:url';

/** Absolute path of the folder, which is shipped unchanged beside `dist`: for `PYTHONPATH` in tests and editors. */
export const PYTHON_PATH = fileURLToPath(new URL('../../../../worker/python', import.meta.url));
