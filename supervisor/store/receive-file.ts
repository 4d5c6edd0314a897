/** Writes arriving bytes to a new file, up to a limit. */
import { createHash } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { formatBytes } from '../options/units.js';

/** The file is larger than allowed. The message is a clause. */
export class TooLarge extends Error {
  constructor(maxBytes: number) {
    super(`it is larger than ${formatBytes(maxBytes)}`);
  }
}

/**
 * Resolves with the SHA-256 in hexadecimal once everything is written; only the user of the server can read the file.
 * Rejects with TooLarge, or with the error of `pieces` or of the system, and then leaves no file. `path` must not exist.
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
    await file.close().catch(() => {}); // the first error is the reason
    await rm(path, { force: true });
    throw thrown;
  }
}
