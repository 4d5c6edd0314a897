/** Does what a Dockerfile says, as far as a machine without a container runtime can. */
import assert from 'node:assert/strict';
import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './packed.js';

export interface Image {
  readonly env: Readonly<Record<string, string>>;
  readonly cmd: readonly string[];
  readonly stopSignal: string;
}

/** Builds the Dockerfile of `context` into `folder`: copies what is copied, runs what is run. */
export async function buildImage(context: string, folder: string): Promise<Image> {
  const env: Record<string, string> = {};
  let [cmd, stopSignal]: [string[], string] = [[], ''];
  for (const [instruction, rest] of instructionsOf(await readFile(join(context, 'Dockerfile'), 'utf8'))) {
    switch (instruction) {
      case 'ENV':
        Object.assign(env, Object.fromEntries([rest.split('=')]));
        break;
      case 'COPY':
        await copy(context, folder, rest.split(' '));
        break;
      case 'RUN':
        await run('sh', ['-c', rest], { cwd: folder, env: { ...process.env, ...env } });
        break;
      case 'CMD':
        cmd = JSON.parse(rest) as string[];
        break;
      case 'STOPSIGNAL':
        stopSignal = rest;
        break;
      default:
        assert.ok(['FROM', 'WORKDIR', 'USER', 'EXPOSE'].includes(instruction), `${instruction} is known`);
    }
  }
  return { env, cmd, stopSignal };
}

function instructionsOf(text: string): (readonly [instruction: string, rest: string])[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]);
}

async function copy(context: string, folder: string, words: readonly string[]): Promise<void> {
  const sources = words.slice(0, -1);
  const ignored = (await readFile(join(context, '.dockerignore'), 'utf8')).split('\n').filter(Boolean);
  const filter = (path: string): boolean => !ignored.includes(path.slice(context.length + 1));
  for (const source of sources) {
    await cp(join(context, source), join(folder, source), { recursive: true, filter });
  }
}
