/** Archives as anybody may send them, such as no archiver would write among them. */
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { Header } from 'tar';
import { ZipFile } from 'yazl';

export interface PackedEntry {
  readonly name: string;
  /** Content of a file. */
  readonly content?: string | Buffer;
  /** Unix permissions and, for zip, the kind of the entry. */
  readonly mode?: number;
  /** For tar, a kind such as `SymbolicLink`; a file if left out, or a folder if the name ends with a slash. */
  readonly type?: 'File' | 'Directory' | 'SymbolicLink' | 'Link' | 'CharacterDevice' | 'BlockDevice' | 'FIFO';
  readonly linkpath?: string;
}

/** Names are written as they stand, whatever they are. */
export async function zipOf(entries: readonly PackedEntry[]): Promise<Buffer> {
  const zip = new ZipFile();
  // The library refuses odd names, so each stands in the archive as a text of its length first.
  const places = entries.map(({ name }, i) => `${i}`.padEnd(Buffer.byteLength(name), '#'));
  entries.forEach(({ content = '', mode = 0o100644 }, i) => {
    zip.addBuffer(Buffer.from(content), places[i] as string, { mode, mtime: new Date(0) });
  });
  zip.end();
  const bytes = await buffer(zip.outputStream);
  entries.forEach(({ name }, i) => rename(bytes, places[i] as string, name));
  return bytes;
}

/** In the two headers of an entry, which its name follows after 30 and 46 bytes. */
function rename(bytes: Buffer, before: string, after: string): void {
  for (let at = bytes.indexOf(before); at !== -1; at = bytes.indexOf(before, at + 1)) {
    const isName =
      bytes.toString('latin1', at - 30, at - 26) === 'PK\x03\x04' ||
      bytes.toString('latin1', at - 46, at - 42) === 'PK\x01\x02';
    if (isName) bytes.write(after, at);
  }
}

/** A tar archive that is compressed with gzip. */
export function tgzOf(entries: readonly PackedEntry[]): Buffer {
  const blocks = entries.flatMap(({ name, content = '', mode = 0o644, type, linkpath }) => {
    const bytes = Buffer.from(content);
    const head = Buffer.alloc(512);
    const header = new Header({
      path: name,
      mode,
      size: bytes.length,
      type: type ?? (name.endsWith('/') ? 'Directory' : 'File'),
      ...(linkpath === undefined ? {} : { linkpath }),
    });
    header.encode(head, 0);
    return [head, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}
