/** The command line `banana-serve optimize ./model.onnx`. */
import { statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { Command } from 'commander';
import { CommandProblem, runCommand } from '../command/own-command.js';
import { usableOnnxruntime, NO_TELEMETRY } from '../runtimes/onnx/find-onnxruntime.js';
import { optimizeModel, type OptimizedModel } from './optimize-model.js';

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
