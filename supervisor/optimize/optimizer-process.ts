/** Runs one step of the optimizer in a process of the worker's side, where onnxruntime is. */
import { fileURLToPath } from 'node:url';
import { execaNode } from 'execa';
import type {
  OptimizerAnswer,
  OptimizerStep,
  RunFacts,
  RunStep,
  SaveStep,
} from '../../protocol/optimizer-steps.js';

const ENTRY = fileURLToPath(new URL('../../worker/load/onnx/optimizer.js', import.meta.url));

/** Why a model was not optimized, for the person who asked for it. Nothing has been written then. */
export class OptimizeProblem extends Error {}

export type OptimizerEnv = Readonly<Record<string, string>>;

/** @throws OptimizeProblem */
export async function saveOptimized(step: Omit<SaveStep, 'step'>, env: OptimizerEnv): Promise<void> {
  await answerOf({ step: 'save', ...step }, env);
}

/** @throws OptimizeProblem */
export async function runModel(step: Omit<RunStep, 'step'>, env: OptimizerEnv): Promise<RunFacts> {
  return (await answerOf({ step: 'run', ...step }, env)) as RunFacts;
}

async function answerOf(step: OptimizerStep, env: OptimizerEnv): Promise<RunFacts | null> {
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
    throw new OptimizeProblem(`The process of onnxruntime ended: ${shortMessage ?? ''}`);
  if ('problem' in answer) throw new OptimizeProblem(answer.problem);
  return answer.facts;
}
