/**
 * `banana-serve optimize ./model.onnx`: writes the optimized graph of an ONNX model with its weights as onnxruntime wants
 * them in memory, so that workers map them from one file instead of each making a copy.
 *
 * 1. A process saves the graph into a new folder.
 * 2. A process each runs the model and the graph: their outputs must be the same, byte by byte.
 * 3. If that saves memory, the folder gets its record and its name. It is never changed afterwards.
 */
import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
  statSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { execaNode } from 'execa';
import type { OptimizerAnswer, OptimizerStep, RunFacts } from '../../protocol/optimizer-steps.js';
import { CommandProblem, runCommand } from '../command/own-command.js';
import { isAlive } from '../machine/processes.js';
import { usableOnnxruntime, NO_TELEMETRY } from '../runtimes/onnx/find-onnxruntime.js';
import {
  folderNameOf,
  GRAPH,
  graphsIn,
  keyOf,
  keyOfFolderName,
  placesOf,
  problemOfFiles,
  recordOf,
  recordPath,
  WEIGHTS,
  modelFacts,
  type FileFacts,
} from '../runtimes/onnx/optimized/optimized-files.js';

/** `args`: arguments without the command's name. Resolves with the exit code. */
export function runOptimize(program: string, args: readonly string[]): Promise<number> {
  const command = new Command(program)
    .description(
      'Saves a model of ONNX as onnxruntime wants it in memory, so that all workers on the CPU share one copy of its weights.',
    )
    .argument('<model>', 'a .onnx file');
  return runCommand(command, args, async () => {
    const cwd = process.cwd();
    const model = resolve(command.args[0] as string);
    const isFile = statSync(model, { throwIfNoEntry: false })?.isFile() ?? false;
    if (!isFile || !model.endsWith('.onnx'))
      throw new CommandProblem(`${model} is no .onnx file. Name one: banana-serve optimize ./model.onnx`);
    const { main, version } = usableOnnxruntime(model, { isUnpacked: false, startFolder: cwd });
    const { ORT_DISABLE_TELEMETRY } = { ...NO_TELEMETRY, ...process.env };
    const optimized = await optimizeModel(model, version, {
      BANANA_ONNXRUNTIME: main,
      ORT_DISABLE_TELEMETRY: ORT_DISABLE_TELEMETRY ?? '',
    });
    process.stdout.write(`${outcomeText(optimized, (path) => relative(cwd, path))}\n`);
  });
}

function outcomeText(
  { isWritten, folder, bytes, runs }: Awaited<ReturnType<typeof optimizeModel>>,
  shown: (path: string) => string,
): string {
  if (runs === null) return `${shown(folder)} is there already (${megabytes(bytes)}); the server uses it.`;
  const { model, graph } = runs;
  const memory =
    model.privateBytes === null || graph.privateBytes === null
      ? ''
      : `Each worker has ${megabytes(graph.privateBytes)} of its own instead of ${megabytes(model.privateBytes)}. `;
  const time = `Loading takes ${Math.round(graph.loadMs)} ms of CPU instead of ${Math.round(model.loadMs)}.`;
  return isWritten
    ? `Wrote ${shown(folder)}, ${megabytes(bytes)}. ${memory}${time}`
    : `Nothing was written: it would take ${megabytes(bytes)} of disk for no gain. ${memory}${time}`;
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}

type Runs = Readonly<Record<'model' | 'graph', RunFacts>>;
type Env = Readonly<Record<string, string>>;

/**
 * `folder`: where the graph lies if it `isWritten` now, or lay already, and its bytes on disk. `runs`: those that were
 * compared; null if it lay there. @throws CommandProblem, and the errors of the file system
 */
async function optimizeModel(model: string, onnxruntime: string, env: Env) {
  const name = folderNameOf(keyOf(await readableFacts(model), onnxruntime));
  const place = writablePlace(model);
  const folder = join(place, name);
  if (graphsIn(place).includes(name)) {
    const problem = await problemOfFiles(folder);
    if (problem === null) return { isWritten: false, folder, bytes: await bytesIn(folder), runs: null };
    rmSync(folder, { recursive: true });
  }
  removeAbandoned(place);
  const made = mkdtempSync(join(place, `${TEMPORARY}${process.pid}-`));
  try {
    const runs = await compare(model, made, env);
    const bytes = await bytesIn(made);
    if (!isGain(runs, bytes)) return { isWritten: false, folder, bytes, runs };
    await keep(made, folder);
    removeOutdated(place, name);
    return { isWritten: true, folder, bytes, runs };
  } finally {
    rmSync(made, { recursive: true, force: true });
    removeIfEmpty(place);
  }
}

/** Begins the name of a folder that is being written; the number of its process follows. */
const TEMPORARY = '.writing-';

/** Removes the folders of an `optimize` that was killed while it wrote. */
function removeAbandoned(place: string): void {
  for (const name of readdirSync(place)) {
    if (!name.startsWith(TEMPORARY)) continue;
    const pid = Number(name.slice(TEMPORARY.length).split('-')[0]);
    if (pid === process.pid || !isAlive(pid)) rmSync(join(place, name), { recursive: true, force: true });
  }
}

/** @throws CommandProblem for a file of weights that is missing */
async function readableFacts(model: string): Promise<FileFacts[]> {
  try {
    return await modelFacts(model);
  } catch (thrown) {
    throw new CommandProblem(`${model}: not all of it can be read: ${(thrown as Error).message}.`);
  }
}

/** A folder beside the model is left only if it has a graph. */
function removeIfEmpty(place: string): void {
  try {
    if (place.endsWith('.optimized')) rmdirSync(place);
  } catch {
    // it has graphs
  }
}

/** Beside the model, else the cache of the user. @throws CommandProblem */
function writablePlace(model: string): string {
  const problems: string[] = [];
  for (const place of placesOf(model, process.env)) {
    try {
      mkdirSync(place, { recursive: true, mode: 0o755 });
      rmSync(mkdtempSync(join(place, `${TEMPORARY}${process.pid}-`)), { recursive: true });
      return place;
    } catch (thrown) {
      problems.push((thrown as Error).message);
    }
  }
  throw new CommandProblem(`There is no folder to write to: ${problems.join('; ')}.`);
}

async function compare(model: string, folder: string, env: Env): Promise<Runs> {
  const graph = join(folder, GRAPH);
  const original = (await answerOf({ step: 'run', model, graph: null, inputs: null }, env)) as RunFacts;
  await answerOf({ step: 'save', model, graph, weights: WEIGHTS }, env);
  const optimized = (await answerOf({ step: 'run', model, graph, inputs: original.inputs }, env)) as RunFacts;
  if (original.digest === optimized.digest) return { model: original, graph: optimized };
  throw new CommandProblem(
    `${model}: the optimized graph does not give the same outputs, byte by byte, so it is not kept. The model is served as it is.`,
  );
}

const ENTRY = fileURLToPath(new URL('../../worker/load/onnx/optimizer.js', import.meta.url));

/** Runs one step in a process of the worker's side, where onnxruntime is. @throws CommandProblem */
async function answerOf(step: OptimizerStep, env: Env): Promise<RunFacts | null> {
  const { ipcOutput, shortMessage } = await execaNode(ENTRY, [JSON.stringify(step)], {
    env,
    ipc: true,
    reject: false,
    stdin: 'ignore',
    stdout: 'inherit',
    stderr: 'inherit',
  });
  const [answer] = ipcOutput as readonly OptimizerAnswer[];
  if (answer === undefined)
    throw new CommandProblem(`The process of onnxruntime ended: ${shortMessage ?? ''}`);
  if ('problem' in answer) throw new CommandProblem(answer.problem);
  return answer.facts;
}

/** The least memory of a worker that is worth twice the weights on disk. */
const LEAST_GAIN_BYTES = 8 * 1024 * 1024;

/** Compares the memory of both processes; the weights decide if the system does not tell it. */
function isGain({ model, graph }: Runs, bytes: number): boolean {
  const isTold = model.privateBytes !== null && graph.privateBytes !== null;
  return (isTold ? model.privateBytes - graph.privateBytes : bytes) >= LEAST_GAIN_BYTES;
}

/** Names the folder once all of it is on the disk. The same one, if another process was faster, is as good. */
async function keep(made: string, folder: string): Promise<void> {
  const record = await recordOf(made);
  writeFileSync(recordPath(made), `${JSON.stringify(record, null, 2)}\n`);
  for (const path of [...Object.keys(record.files).map((name) => join(made, name)), recordPath(made), made])
    syncPath(path);
  chmodSync(made, 0o755); // a server may run as another user
  try {
    renameSync(made, folder);
  } catch (thrown) {
    if ((await problemOfFiles(folder)) !== null) throw thrown;
  }
  syncPath(dirname(folder));
}

function syncPath(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Removes the graphs of earlier models of this place; processes that have mapped one keep it. A cache has other models. */
function removeOutdated(place: string, name: string): void {
  if (!place.endsWith('.optimized')) return;
  const made = keyOfFolderName(name);
  for (const other of graphsIn(place)) {
    const key = keyOfFolderName(other);
    const isOutdated = key !== null && key.model !== made?.model;
    if (isOutdated) rmSync(join(place, other), { recursive: true });
  }
}

async function bytesIn(folder: string): Promise<number> {
  const { files } = await recordOf(folder);
  return Object.values(files).reduce((sum, { bytes }) => sum + bytes, 0);
}
