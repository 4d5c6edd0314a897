/** A model that does nothing, and cannot be loaded while the file is there that CRASH_FILE names. */
import { existsSync } from 'node:fs';

if (existsSync(process.env.CRASH_FILE)) process.exit(1);

export const inference = () => null;
