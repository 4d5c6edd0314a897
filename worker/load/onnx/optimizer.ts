/**
 * A process that does one step of `banana-serve optimize`: saves the optimized graph of a model, or runs one to compare
 * it. Each step has its own, so that its memory is that of one session. The answer is one message.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { describeThrown } from '../../../protocol/errors.js';
import {
  INPUT_KINDS,
  type InputKind,
  type OptimizerAnswer,
  type OptimizerStep,
  type RunFacts,
  type RunStep,
  type SaveStep,
} from '../../../protocol/optimizer-steps.js';
import { asSentence } from '../../../protocol/text/sentences.js';
import { readJson } from '../../formats/json.js';
import { readCallInputs } from './call-inputs.js';
import type { SessionAttempt } from './explain-session-error.js';
import { requireOnnxruntime, runSession, type Onnxruntime } from './onnxruntime.js';
import { CPU } from './providers.js';
import { sampleInputs } from './warm-up.js';
import { createSession, optimizedOptions, sessionOptions } from './session.js';
import { readModelWords } from './model-words.js';
import { signatureOfSession } from './session-signature.js';
import type { Signature } from '../../../protocol/values/tensor.js';
import type { Tensors } from './rows.js';

const DEVICE = { gpu: null, threads: 1 };
const ROWS = [1, 2, 8];

async function take(step: OptimizerStep): Promise<RunFacts | null> {
  const onnxruntime = requireOnnxruntime(process.env['BANANA_ONNXRUNTIME'] ?? 'onnxruntime-node');
  if (step.step === 'save') {
    await save(onnxruntime, step);
    return null;
  }
  return run(onnxruntime, step);
}

async function save(onnxruntime: typeof Onnxruntime, { model, graph, weights }: SaveStep): Promise<void> {
  const options = sessionOptions([CPU], DEVICE);
  const session = {
    ...(options.extra?.['session'] as object),
    optimized_model_external_initializers_file_name: weights,
    save_external_prepacked_constant_initializers: '1',
  };
  await createSession(onnxruntime, attemptAt(model), {
    ...options,
    optimizedModelFilePath: graph,
    extra: { ...options.extra, session },
  });
}

async function run(onnxruntime: typeof Onnxruntime, { model, graph, inputs }: RunStep): Promise<RunFacts> {
  const before = process.cpuUsage();
  const options = graph === null ? sessionOptions([CPU], DEVICE) : optimizedOptions(DEVICE);
  const session = await createSession(onnxruntime, attemptAt(model), options, graph ?? model);
  const { user, system } = process.cpuUsage(before);
  const { signature } = signatureOfSession(model, session, readModelWords(model));
  let reason: unknown = new Error('there is no example beside it');
  for (const kind of inputs === null ? INPUT_KINDS : [inputs]) {
    try {
      const samples = samplesOf(kind, model, signature);
      if (samples === null) continue;
      const digest = await digestOfRuns(onnxruntime, session, samples);
      return { inputs: kind, digest, loadMs: (user + system) / 1000, privateBytes: privateBytes() };
    } catch (thrown) {
      reason = thrown;
    }
  }
  throw new Error(
    `${model}: it runs neither with an example nor with zeros, so it cannot be compared: ${asSentence(describeThrown(reason).message)} Put an input that works into ${exampleOf(model)}.`,
  );
}

function attemptAt(path: string): SessionAttempt {
  return { path, providers: [CPU], given: [CPU] };
}

function exampleOf(model: string): string {
  return model.replace(/\.onnx$/, '.example.json');
}

/** Null for an example that is not there. */
function samplesOf(kind: InputKind, model: string, signature: Signature): Tensors[] | null {
  if (kind !== 'example') return ROWS.map((rows) => sampleInputs(signature, rows, kind === 'zeros'));
  const file = exampleOf(model);
  return existsSync(file) ? [readCallInputs(readJson(readFileSync(file)), signature).tensors] : null;
}

async function digestOfRuns(
  onnxruntime: typeof Onnxruntime,
  session: Onnxruntime.InferenceSession,
  samples: readonly Tensors[],
): Promise<string> {
  const hash = createHash('sha256');
  const names = session.outputMetadata.filter(({ isTensor }) => isTensor).map(({ name }) => name);
  for (const sample of samples) {
    const outputs = await runSession(onnxruntime, session, sample, names);
    for (const [name, { datatype, shape, data }] of Object.entries(outputs)) {
      hash.update(JSON.stringify([name, datatype, shape]));
      hash.update(
        ArrayBuffer.isView(data)
          ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
          : JSON.stringify(data),
      );
    }
  }
  return hash.digest('hex');
}

/** Weights that are mapped from a file are shared, so they are none of it. Linux only. */
function privateBytes(): number | null {
  try {
    const text = readFileSync('/proc/self/smaps_rollup', 'utf8');
    return Number(/^Anonymous:\s+(\d+) kB$/m.exec(text)?.[1]) * 1024;
  } catch {
    return null;
  }
}

const step = JSON.parse(process.argv[2] ?? '') as OptimizerStep;
const answer: OptimizerAnswer = await take(step).then(
  (facts) => ({ facts }),
  (thrown: unknown) => ({ problem: describeThrown(thrown).message }),
);
process.send?.(answer, () => process.exit());
