/** Writes what arrives to a new file, within a bound on its size. */
import { createHash } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { formatBytes } from '../options/units.js';

/** More comes than is taken. The message is a clause. */
export class TooLarge extends Error {
  constructor(maxBytes: number) {
    super(`it is larger than ${formatBytes(maxBytes)}`);
  }
}

/**
 * Resolves with the SHA-256 of it all, in hexadecimal, once it is written; the file is for its owner only. Rejects with
 * TooLarge, or with what `pieces` or the system throws; then there is no file. `path`: of a file that is not there.
 */
export async function receiveFile(
  pieces: AsyncIterable<Uint8Array>,
  path: string,
  maxBytes: number,
): Promise<string> {
  const file = await open(path, 'wx', 0o600);
  try {
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const piece of pieces) {
      bytes += piece.length;
      if (bytes > maxBytes) throw new TooLarge(maxBytes);
      hash.update(piece);
      await file.writeFile(piece);
    }
    await file.close();
    return hash.digest('hex');
  } catch (thrown) {
    await file.close().catch(() => {}); // what was thrown first is the reason
    await rm(path, { force: true });
    throw thrown;
  }
}
