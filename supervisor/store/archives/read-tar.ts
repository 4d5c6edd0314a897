/** Reads the entries of a gzip-compressed tar archive. */
import { once } from 'node:events';
import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Parser, ReadEntry } from 'tar';
import { ArchiveProblem, PIECE_BYTES, type ArchiveEntry, type UnpackedSum } from './archive-entry.js';

/** As `readZip`. */
export async function* readTar(file: FileHandle, sum: UnpackedSum): AsyncGenerator<ArchiveEntry> {
  const { Parser } = await import('tar');
  // Decompressed here, in Node's thread pool: the parser would do it on the main thread.
  const source = Readable.from(bytesOf(file), { objectMode: false });
  const tar = source.pipe(createGunzip({ chunkSize: PIECE_BYTES }));
  source.on('error', (error) => tar.destroy(error));
  const stop = new AbortController();
  try {
    yield* entriesOf(new Parser(), counted(tar, sum), stop.signal);
  } finally {
    stop.abort();
    tar.destroy();
    source.destroy();
    if (!source.closed) await once(source, 'close'); // then nothing reads the file any more
  }
}

async function* bytesOf(file: FileHandle): AsyncGenerator<Buffer> {
  for (let at = 0; ;) {
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, at);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}

const CHUNK_BYTES = 64 * 1024;

async function* counted(source: AsyncIterable<Buffer>, sum: UnpackedSum): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    sum.countUnzipped(chunk.length);
    yield chunk;
  }
}

async function* entriesOf(
  parser: Parser,
  tar: AsyncIterable<Buffer>,
  signal: AbortSignal,
): AsyncGenerator<ArchiveEntry> {
  /** Events of the parser that are not consumed yet. */
  const events: (ReadEntry | 'end')[] = [];
  const state: State = { error: null };
  let wake = (): void => {};
  let current: ReadEntry | null = null;
  const fail = (error: Error): void => {
    state.error ??= error;
    current?.destroy(state.error); // a reader may wait for its content
    wake();
  };
  const add = (event: ReadEntry | 'end'): void => {
    events.push(event);
    wake();
  };
  parser.on('entry', add);
  parser.on('ignoredEntry', (entry: ReadEntry) => fail(unknownKind(entry)));
  parser.on('warn', (_code: string, what: string | Error) =>
    fail(what instanceof Error ? what : new Error(what)),
  );
  parser.on('end', () => add('end'));
  feed(parser, tar, signal).catch(fail);
  while (state.error === null) {
    const event = events.shift();
    if (event === 'end') return;
    if (event === undefined) await new Promise<void>((resolve) => (wake = resolve));
    else {
      current = event.on('error', () => {}); // its reader gets the error
      yield factsOf(event, state);
    }
  }
  throw state.error;
}

/** The error that prevents reading the rest of the archive; null while there is none. */
interface State {
  error: Error | null;
}

async function feed(parser: Parser, tar: AsyncIterable<Buffer>, signal: AbortSignal): Promise<void> {
  let isOver = false;
  parser.on('eof', () => (isOver = true));
  for await (const chunk of withWholeHead(tar)) {
    // Bytes after the end are read only for gzip's checksum: the parser would keep all of them.
    if (!isOver && !parser.write(chunk)) await once(parser, 'drain', { signal });
  }
  parser.end();
}

/** Refuses a second layer of compression, which the parser would decompress uncounted. @throws ArchiveProblem */
async function* withWholeHead(tar: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let head: Buffer | null = Buffer.alloc(0);
  for await (const chunk of tar) {
    head = head === null ? null : Buffer.concat([head, chunk]);
    if (head !== null && head.length < HEAD_BYTES) continue;
    yield head === null ? chunk : notZipped(head);
    head = null;
  }
  if (head !== null) yield notZipped(head);
}

const HEAD_BYTES = 512;

function notZipped(head: Buffer): Buffer {
  const start = head.toString('latin1', 0, 4);
  if (!start.startsWith('\x1f\x8b') && start !== '\x28\xb5\x2f\xfd') return head;
  throw new ArchiveProblem('it is compressed twice.');
}

const KINDS: Readonly<Record<string, string>> = {
  File: 'file',
  OldFile: 'file',
  ContiguousFile: 'file',
  Directory: 'folder',
  SymbolicLink: 'a symbolic link',
  Link: 'a hard link',
};

function factsOf(entry: ReadEntry, state: State): ArchiveEntry {
  const kind = KINDS[entry.type] ?? 'a device, a pipe or a socket';
  if (kind !== 'file') entry.resume(); // skips its content
  return {
    name: entry.path,
    kind,
    isExecutable: ((entry.mode ?? 0) & 0o111) !== 0,
    crc32: null, // gzip has one checksum of the whole
    content: () => Promise.resolve(contentOf(entry, state)),
  };
}

async function* contentOf(entry: ReadEntry, state: State): AsyncGenerator<Uint8Array> {
  const chunks = entry[Symbol.asyncIterator]();
  while (state.error === null) {
    const step = await chunks.next();
    if (step.done === true) return;
    yield step.value;
  }
  throw state.error;
}

function unknownKind({ path, type }: ReadEntry): ArchiveProblem {
  return new ArchiveProblem(`its entry ${JSON.stringify(path)} is of a kind that is not unpacked (${type}).`);
}
