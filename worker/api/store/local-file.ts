/** The file of a local store before LMDB opens it: the library ends the whole process when it cannot open one. */
import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, readSync } from 'node:fs';
import { dirname } from 'node:path';

const { O_CREAT, O_RDWR, R_OK, W_OK } = constants;
const OWNER_ONLY = 0o600;
const MAGIC = 0xbeefc0de;
const MAGIC_AT = 24;

/** Makes the folder and an empty file if there are none. @throws if the file cannot be used, and says why */
export function prepareFile(file: string): void {
  mkdirSync(dirname(file), { recursive: true });
  checkContent(file);
  // The file is not opened here: closing it again would release the locks that this process holds on it.
  const lock = `${file}-lock`;
  accessSync(existsSync(lock) ? lock : dirname(file), R_OK | W_OK);
}

function checkContent(file: string): void {
  const fd = openSync(file, O_RDWR | O_CREAT, OWNER_ONLY);
  try {
    const head = Buffer.alloc(MAGIC_AT + 4);
    const length = readSync(fd, head, 0, head.length, 0);
    if (length > 0 && head.readUInt32LE(MAGIC_AT) !== MAGIC)
      throw new Error('it is a file of something else');
  } finally {
    closeSync(fd);
  }
}
