/**
 * Finds a local store whose file was cut short, by a full disk or a copy that broke off. LMDB maps the file and dies of SIGBUS
 * on the first page that is not there, and so would every worker after it.
 *
 * 1. The newest meta page says how many pages there are. A file that holds them is left alone.
 * 2. A shorter one may still be whole: LMDB never writes a last page that was freed before its commit. So a program of
 *    its own reads everything in it, and its death is the proof.
 * 3. A damaged file is set aside with its lock file, and said so. Nothing is deleted.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, fstatSync, openSync, readSync, renameSync, statSync } from 'node:fs';

/** Offsets in a meta page of LMDB's data version 2, as the library lmdb writes it. */
const MAGIC_AT = 24;
const VERSION_AT = 28;
const PAGE_SIZE_AT = 48;
const LAST_PAGE_AT = 144;
const TXN_AT = 152;
const META_BYTES = 160;
const MAGIC = 0xbeefc0de;
const VERSION = 2;

/** `table`: how `local.ts` opens its tables; `file` is absolute. */
export async function setAsideIfDamaged(file: string, table: object): Promise<void> {
  if (!existsSync(file)) return;
  const fd = openSync(file, 'r');
  try {
    const wantedBytes = bytesOfStore(fd);
    const { size, ino } = fstatSync(fd);
    if (size >= wantedBytes || (await isReadable(file, table))) return;
    // Another worker may have set it aside in the meantime: then the file of that name is a new one.
    if (!existsSync(file) || statSync(file).ino !== ino) return;
    const aside = `${file}.damaged-${Date.now()}`;
    renameSync(file, aside);
    if (existsSync(`${file}-lock`)) renameSync(`${file}-lock`, `${aside}-lock`);
    process.stderr.write(
      `The local store ${file} is damaged: ${size} of its ${wantedBytes} bytes are there. It was set aside as ${aside}; the store goes on empty.\n`,
    );
  } finally {
    closeSync(fd);
  }
}

/** Returns the length that a file with all its pages has; 0 for a kind of file that this code does not know. */
function bytesOfStore(fd: number): number {
  const first = readMeta(fd, 0);
  if (first === null) return 0;
  const pageBytes = first.readUInt32LE(PAGE_SIZE_AT);
  const second = readMeta(fd, pageBytes);
  if (second === null) return 2 * pageBytes;
  const newest = second.readBigUInt64LE(TXN_AT) > first.readBigUInt64LE(TXN_AT) ? second : first;
  return (Number(newest.readBigUInt64LE(LAST_PAGE_AT)) + 1) * pageBytes;
}

function readMeta(fd: number, position: number): Buffer | null {
  const meta = Buffer.alloc(META_BYTES);
  if (readSync(fd, meta, 0, META_BYTES, position) < META_BYTES) return null;
  return meta.readUInt32LE(MAGIC_AT) === MAGIC && meta.readUInt32LE(VERSION_AT) === VERSION ? meta : null;
}

/** Reads the whole file in a process of its own, which may die of it. */
async function isReadable(file: string, table: object): Promise<boolean> {
  const program = `
    const { open } = await import(${JSON.stringify(import.meta.resolve('lmdb'))});
    const table = ${JSON.stringify(table)};
    const root = open({ path: ${JSON.stringify(file)}, noSubdir: true, ...table });
    for (const name of ['values', 'expiries'])
      for (const { value } of root.openDB(name, table).getRange()) value.length;
    await root.close();`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'ignore' });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code === 0;
}
