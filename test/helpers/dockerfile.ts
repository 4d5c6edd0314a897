/** Runs a Dockerfile, as far as a machine without a container runtime can. */
import assert from 'node:assert/strict';
import { cp, mkdir, readFile, readdir } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { install } from './packed.js';

/** npm asks for what its cache lacks only. */
const CACHED = { npm_config_prefer_offline: 'true' };

export interface Image {
  readonly env: Readonly<Record<string, string>>;
  readonly cmd: readonly string[];
  readonly stopSignal: string;
  readonly user: string;
  readonly healthcheck: readonly string[];
}

/**
 * Builds the Dockerfile of `context` into `folder`: copies what is copied, runs what is run. Stages that have a name are
 * built beside it, in folders of that name. `bin`: a folder of the programs that the base images bring.
 */
export async function buildImage(context: string, folder: string, bin?: string): Promise<Image> {
  const path = bin === undefined ? {} : { PATH: `${bin}:${process.env['PATH'] ?? ''}` };
  let [workdir, env, cmd, stopSignal]: [string, Record<string, string>, string[], string] = ['', {}, [], ''];
  let [user, healthcheck]: [string, string[]] = ['', []];
  for (const [instruction, rest] of instructionsOf(await readFile(join(context, 'Dockerfile'), 'utf8'))) {
    switch (instruction) {
      case 'FROM':
        workdir = stageFolder(folder, / AS (\w+)$/.exec(rest)?.[1]);
        await mkdir(workdir, { recursive: true });
        env = { ...path };
        break;
      case 'ENV':
        Object.assign(env, Object.fromEntries([rest.split('=')]));
        break;
      case 'COPY':
        await copy(context, folder, workdir, rest.split(' '));
        break;
      case 'RUN':
        await install('sh', ['-c', rest], { cwd: workdir, env: { ...process.env, ...CACHED, ...env } });
        break;
      case 'CMD':
        cmd = JSON.parse(rest) as string[];
        break;
      case 'HEALTHCHECK':
        healthcheck = JSON.parse(rest.slice(rest.indexOf('CMD ') + 4)) as string[];
        break;
      case 'USER':
        user = rest;
        break;
      case 'STOPSIGNAL':
        stopSignal = rest;
        break;
      default:
        assert.ok(['WORKDIR', 'EXPOSE'].includes(instruction), `${instruction} is known`);
    }
  }
  assert.equal(workdir, folder, 'the last stage has no name');
  return { env, cmd, stopSignal, user, healthcheck };
}

function stageFolder(folder: string, name?: string): string {
  return name === undefined ? folder : join(dirname(folder), name);
}

function instructionsOf(text: string): (readonly [instruction: string, rest: string])[] {
  const whole = text.replace(/ *\\\n */g, ' ');
  const lines = whole.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]);
}

async function copy(
  context: string,
  folder: string,
  workdir: string,
  words: readonly string[],
): Promise<void> {
  const [, stage] = /^--from=(.*)$/.exec(words[0] ?? '') ?? [];
  if (stage !== undefined) {
    await copyFrom(stageFolder(folder, stage), workdir, words.slice(1));
    return;
  }
  const ignored = (await readFile(join(context, '.dockerignore'), 'utf8')).split('\n').filter(Boolean);
  const filter = (path: string): boolean => !isIgnored(relative(context, path), ignored);
  const names = await readdir(context);
  const sources = words.slice(0, -1).flatMap((word) => {
    return word.startsWith('*') ? names.filter((name) => name.endsWith(word.slice(1))) : [word];
  });
  for (const source of sources) {
    await cp(join(context, source), join(workdir, source), { recursive: true, filter });
  }
}

/** Whether a line of `.dockerignore` matches: a path, or after `**` and a slash a name at any depth. */
function isIgnored(path: string, lines: readonly string[]): boolean {
  return lines.some((line) =>
    line.startsWith('**/') ? path.split('/').includes(line.slice(3)) : path === line,
  );
}

/** Copies the files of another stage; a program of its base image is on the search path already. */
async function copyFrom(
  stage: string,
  workdir: string,
  [source = '', target = '']: readonly string[],
): Promise<void> {
  const [, made] = /^\/app\/(.*)$/.exec(source) ?? [];
  if (made !== undefined) await cp(join(stage, made), join(workdir, target), { recursive: true });
  else assert.deepEqual([dirname(source), target], ['/usr/local/bin', source]);
}
