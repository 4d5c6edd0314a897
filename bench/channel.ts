/**
 * `node dist/bench/channel.js`: one frame as one copied write, or as a gathered write of its parts?
 * COPY_LIMIT_BYTES in protocol/wire/channel.ts rests on its result. The other end is another process that only reads.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { median } from './statistics.js';

const KIB = 1024;
const BODY_BYTES = [0, 256, KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 64 * KIB, 256 * KIB];
const FRAMES_PER_WRITE = [1, 8, 32];
const ROUNDS = 7;
const ROUND_MS = 40;
const PREFIX = Buffer.alloc(8);
const HEAD = Buffer.alloc(120, 1);

type Send = (out: Writable, parts: readonly Uint8Array[], bytes: number, done: () => void) => void;

if (process.argv[2] === 'sink') {
  process.stdin.resume();
} else {
  await main();
}

async function main(): Promise<void> {
  const sink = spawn(process.execPath, [fileURLToPath(import.meta.url), 'sink'], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  console.log('frames  body       copied   gathered   us per frame, until the kernel has it');
  for (const frames of FRAMES_PER_WRITE) {
    for (const bodyBytes of BODY_BYTES) {
      const [copied, gathered] = await compare(sink.stdin, frames, bodyBytes);
      const size = `${(bodyBytes / KIB).toString().padStart(5)} KiB`;
      console.log(
        `${String(frames).padStart(6)} ${size} ${copied.toFixed(1).padStart(10)} ${gathered.toFixed(1).padStart(10)}`,
      );
    }
  }
  sink.stdin.end();
  await once(sink, 'exit');
}

async function compare(
  out: Writable,
  frames: number,
  bodyBytes: number,
): Promise<[copied: number, gathered: number]> {
  const body = Buffer.alloc(bodyBytes, 2);
  const frame = bodyBytes === 0 ? [PREFIX, HEAD] : [PREFIX, HEAD, body];
  const parts = Array.from({ length: frames }, () => frame).flat();
  const bytes = parts.reduce((sum, part) => sum + part.length, 0);
  const copied: number[] = [];
  const gathered: number[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const a = await usPerWrite(sendCopied, out, parts, bytes);
    const b = await usPerWrite(sendGathered, out, parts, bytes);
    if (round === 0) continue; // warm-up
    copied.push(a / frames);
    gathered.push(b / frames);
  }
  return [median(copied), median(gathered)];
}

async function usPerWrite(
  send: Send,
  out: Writable,
  parts: readonly Uint8Array[],
  bytes: number,
): Promise<number> {
  const startedAtMs = performance.now();
  const endAtMs = startedAtMs + ROUND_MS;
  let writes = 0;
  await new Promise<void>((resolve) => {
    const next = (): void => {
      if (performance.now() > endAtMs) return resolve();
      writes += 1;
      send(out, parts, bytes, next);
    };
    next();
  });
  return ((performance.now() - startedAtMs) * 1000) / writes;
}

function sendCopied(out: Writable, parts: readonly Uint8Array[], bytes: number, done: () => void): void {
  const joined = Buffer.allocUnsafe(bytes);
  let offset = 0;
  for (const part of parts) {
    joined.set(part, offset);
    offset += part.length;
  }
  out.write(joined, done);
}

function sendGathered(out: Writable, parts: readonly Uint8Array[], _bytes: number, done: () => void): void {
  out.cork();
  const last = parts.length - 1;
  for (let i = 0; i < last; i += 1) out.write(parts[i]);
  out.write(parts[last], done);
  out.uncork();
}
