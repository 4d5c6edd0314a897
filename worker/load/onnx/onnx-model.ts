/**
 * One ONNX model as an app: answers calls, alone or several in one run.
 *
 * 1. `call-inputs.ts` makes checked tensors of the input of each call.
 * 2. `rows.ts` arranges the calls in runs, and joins the rows of each.
 * 3. The session runs them; a run that throws is halved until the call that is to blame fails alone.
 * 4. The outputs are split, and leave as the inputs came: as tensors or as lists.
 */
import { halvesOf } from '../../adapters/batch-entries.js';
import {
  elementCount,
  type Datatype,
  type Signature,
  type TensorData,
} from '../../../protocol/values/tensor.js';
import { numberOfHalfBits } from '../../formats/open-inference/elements.js';
import { hintOnce } from '../../process/hint-once.js';
import { readCallInputs, type CallInputs } from './call-inputs.js';
import { explainRunError } from './explain-run-error.js';
import { runSession, type Onnxruntime } from './onnxruntime.js';
import { arrangeRuns, haveRows, joinRows, mapTensors, rowsOf, splitRows, type Tensors } from './rows.js';

/** A call and its place in the batch. */
interface Item extends CallInputs {
  readonly index: number;
}

export class OnnxModel {
  readonly #onnxruntime: typeof Onnxruntime;
  readonly #session: Onnxruntime.InferenceSession;
  readonly #signature: Signature;
  readonly #outputNames: readonly string[];
  readonly #maxRows: number;
  /** False from the first run whose outputs do not have a row for each row of its inputs. */
  #joins: boolean;

  /** `maxRows`: most rows of a run; null if the calls of this model cannot be joined. */
  constructor(
    onnxruntime: typeof Onnxruntime,
    session: Onnxruntime.InferenceSession,
    signature: Signature,
    maxRows: number | null,
  ) {
    this.#onnxruntime = onnxruntime;
    this.#session = session;
    this.#signature = signature;
    this.#outputNames = signature.outputs.map(({ name }) => name);
    this.#maxRows = maxRows ?? 1;
    this.#joins = maxRows !== null;
  }

  /**
   * Runs an input alone, and as often as a run may have rows, so that the first calls find memory and kernels ready.
   * @throws SERVE_BAD_BODY, and the errors of onnxruntime
   */
  async warmUp(input: unknown): Promise<void> {
    const { tensors } = readCallInputs(input, this.#signature);
    const rows = rowsOf(tensors);
    this.#check(await this.#run(tensors), rows);
    if (!this.#joins || rows === null || 2 * rows > this.#maxRows) return;
    const calls = Math.floor(this.#maxRows / rows);
    this.#check(await this.#run(joinRows(Array<Tensors>(calls).fill(tensors))), calls * rows);
  }

  /** Answers one call. @throws SERVE_BAD_BODY, and the errors of a run */
  async infer(input: unknown, isJson = false): Promise<unknown> {
    const call = readCallInputs(input, this.#signature, isJson);
    const outputs = await this.#run(call.tensors);
    this.#check(outputs, rowsOf(call.tensors));
    return answerOf(call, outputs);
  }

  /** Answers several calls; the entry of a call that fails is its error. */
  async inferBatch(inputs: readonly unknown[], areJson: readonly boolean[] = []): Promise<unknown[]> {
    const answers: unknown[] = [];
    const items = inputs.flatMap((input, index): Item[] => {
      try {
        return [{ ...readCallInputs(input, this.#signature, areJson[index]), index }];
      } catch (thrown) {
        answers[index] = thrown;
        return [];
      }
    });
    // The operator may have allowed larger batches since this worker started.
    const maxRows = Math.max(this.#maxRows, inputs.length);
    const runs = this.#joins ? arrangeRuns(items, maxRows) : items.map((item) => [item]);
    for (const run of runs) await this.#answerRun(run, answers);
    return answers;
  }

  async #answerRun(items: readonly Item[], answers: unknown[]): Promise<void> {
    const [first] = items as readonly [Item];
    let outputs: Tensors;
    try {
      outputs = await this.#run(joinRows(items.map(({ tensors }) => tensors)));
    } catch (thrown) {
      if (items.length > 1) for (const half of halvesOf(items)) await this.#answerRun(half, answers);
      else answers[first.index] = thrown;
      return;
    }
    const counts = items.map(({ tensors }) => rowsOf(tensors));
    this.#check(outputs, counts.includes(null) ? null : sumOf(counts as number[]));
    if (items.length === 1) answers[first.index] = answerOf(first, outputs);
    else if (this.#joins) {
      const parts = splitRows(outputs, counts as number[]);
      for (const [i, item] of items.entries()) answers[item.index] = answerOf(item, parts[i] as Tensors);
    } else for (const item of items) await this.#answerRun([item], answers);
  }

  /** Joins no more calls if the outputs of a run do not have its rows; null for a run whose inputs have none. */
  #check(outputs: Tensors, rows: number | null): void {
    if (!this.#joins || rows === null || haveRows(outputs, rows)) return;
    this.#joins = false;
    hintOnce(
      'onnx rows',
      () =>
        'The outputs of the model do not have a row for each row of its inputs, so its calls run one by one.',
    );
  }

  async #run(tensors: Tensors): Promise<Tensors> {
    try {
      return await runSession(this.#onnxruntime, this.#session, tensors, this.#outputNames);
    } catch (thrown) {
      throw explainRunError(thrown, tensors, this.#session.inputMetadata);
    }
  }
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

/** The outputs of a call, in the form in which its inputs came. */
function answerOf({ areTensors, isRow }: CallInputs, outputs: Tensors): unknown {
  if (areTensors) return outputs;
  return mapTensors(outputs, ({ datatype, shape, data }) =>
    nest(elementsOf(datatype, data), isRow && shape[0] === 1 ? shape.slice(1) : shape, 0, 0),
  );
}

/** The elements as JSON and MessagePack have them: bits and bytes would mean something else there. */
function elementsOf(datatype: Datatype, data: TensorData[Datatype]): ArrayLike<unknown> {
  switch (datatype) {
    case 'BOOL':
      return Array.from(data as TensorData['BOOL'], (bit) => bit !== 0);
    case 'UINT8':
      return Array.from(data as TensorData['UINT8']);
    case 'FP16':
      return Array.from(data as TensorData['FP16'], (bits) => numberOfHalfBits(bits, 'FP16'));
    default:
      return data;
  }
}

/** The elements nested as the shape is; a single element without any list if the shape is `[]`. */
function nest(elements: ArrayLike<unknown>, shape: readonly number[], level: number, at: number): unknown {
  const size = shape[level];
  if (size === undefined) return elements[at];
  const step = elementCount(shape.slice(level + 1));
  if (level === shape.length - 1) return (elements as Float32Array).slice(at, at + size);
  return Array.from({ length: size }, (_, i) => nest(elements, shape, level + 1, at + i * step));
}
