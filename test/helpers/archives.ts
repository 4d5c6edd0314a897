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
    const compress = content.length > 0; // to compress nothing takes a stream of zlib too
    zip.addBuffer(Buffer.from(content), places[i] as string, { mode, mtime: new Date(0), compress });
  });
  zip.end();
  const bytes = await buffer(zip.outputStream);
  let at = 0;
  for (const header of HEADERS)
    for (const [i, { name }] of entries.entries()) {
      at = placeAfter(at, bytes, header, places[i] as string);
      bytes.write(name, at);
    }
  return bytes;
}

/** An entry's two headers, each in the order of the entries: how they begin, and where its name stands in them. */
const HEADERS = [
  { start: 'PK\x03\x04', nameAt: 30 },
  { start: 'PK\x01\x02', nameAt: 46 },
] as const;

/** Finds the next header of this kind with this name; returns the place of the name. */
function placeAfter(
  from: number,
  bytes: Buffer,
  { start, nameAt }: (typeof HEADERS)[number],
  name: string,
): number {
  for (let at = bytes.indexOf(name, from); at !== -1; at = bytes.indexOf(name, at + 1))
    if (bytes.toString('latin1', at - nameAt, at - nameAt + start.length) === start) return at;
  throw new Error(`the archive has no header of ${name}`);
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
