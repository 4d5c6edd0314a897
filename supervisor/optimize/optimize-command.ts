/** The command line `banana-serve optimize ./model.onnx`. */
import { statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { Command, CommanderError } from 'commander';
import { ServeError } from '../../protocol/errors.js';
import { usableOnnxruntime, NO_TELEMETRY } from '../runtimes/onnx/find-onnxruntime.js';
import { OptimizeProblem, optimizeModel, type OptimizedModel } from './optimize-model.js';

/** `args`: arguments without the command's name. Resolves with the exit code: 1 after a failure, 2 for a wrong command line. */
export async function runOptimize(program: string, args: readonly string[]): Promise<number> {
  const print = (text: string): void => void process.stderr.write(`${program}: ${text}\n`);
  const command = new Command(program)
    .description(
      'Saves a model of ONNX as onnxruntime wants it in memory, so that all workers on the CPU share one copy of its weights.',
    )
    .argument('<model>', 'a .onnx file')
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ outputError: (text) => print(text.replace(/^error: /, '').trimEnd()) });
  try {
    command.parse(args, { from: 'user' });
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2;
    throw thrown;
  }
  return optimize(resolve(command.args[0] as string), print);
}

async function optimize(model: string, print: (text: string) => void): Promise<number> {
  const cwd = process.cwd();
  try {
    const isFile = statSync(model, { throwIfNoEntry: false })?.isFile() ?? false;
    if (!isFile || !model.endsWith('.onnx'))
      throw new OptimizeProblem(`${model} is no .onnx file. Name one: banana-serve optimize ./model.onnx`);
    const { main, version } = usableOnnxruntime(model, { isUnpacked: false, startFolder: cwd });
    const { ORT_DISABLE_TELEMETRY } = { ...NO_TELEMETRY, ...process.env };
    const optimized = await optimizeModel(model, version, {
      BANANA_ONNXRUNTIME: main,
      ORT_DISABLE_TELEMETRY: ORT_DISABLE_TELEMETRY ?? '',
    });
    process.stdout.write(`${outcomeText(optimized, (path) => relative(cwd, path))}\n`);
    return 0;
  } catch (thrown) {
    const { message, code } = thrown as NodeJS.ErrnoException;
    const isExpected = thrown instanceof OptimizeProblem || thrown instanceof ServeError;
    if (!isExpected && code === undefined) throw thrown; // a mistake of ours
    print(message);
    return thrown instanceof ServeError ? 2 : 1;
  }
}

function outcomeText(
  { outcome, folder, bytes, runs }: OptimizedModel,
  shown: (path: string) => string,
): string {
  if (runs === null) return `${shown(folder)} is there already (${megabytes(bytes)}); the server uses it.`;
  const { model, graph } = runs;
  const memory =
    model.privateBytes === null || graph.privateBytes === null
      ? ''
      : `Each worker has ${megabytes(graph.privateBytes)} of its own instead of ${megabytes(model.privateBytes)}. `;
  const time = `Loading takes ${Math.round(graph.loadMs)} ms of CPU instead of ${Math.round(model.loadMs)}.`;
  return outcome === 'written'
    ? `Wrote ${shown(folder)}, ${megabytes(bytes)}. ${memory}${time}`
    : `Nothing was written: it would take ${megabytes(bytes)} of disk for no gain. ${memory}${time}`;
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}
