/** Joins the rows of several calls into the inputs of one run, and splits its outputs again. */
import { Tensor, type Datatype, type TensorData } from '../../../protocol/values/tensor.js';

/** Tensors by name. */
export type Tensors = Readonly<Record<string, Tensor>>;

/** Returns the results of `convert` by the names of the tensors. */
export function mapTensors<Result>(
  tensors: Tensors,
  convert: (tensor: Tensor, name: string) => Result,
): Readonly<Record<string, Result>> {
  const entries = Object.entries(tensors).map(([name, tensor]) => [name, convert(tensor, name)] as const);
  return Object.fromEntries(entries);
}

/** The rows of a call: the first dimension of all its inputs. Null if they differ, or there are none to join. */
export function rowsOf(tensors: Tensors): number | null {
  const [first, ...others] = Object.values(tensors).map(({ shape }) => shape[0]);
  return first !== undefined && first > 0 && others.every((rows) => rows === first) ? first : null;
}

/**
 * Arranges calls in runs of at most `maxRows` rows, each of calls whose inputs have the same shape but for the rows. A
 * call that has more rows, or none that can be joined, is alone in its run.
 */
export function arrangeRuns<Call extends { readonly tensors: Tensors }>(
  calls: readonly Call[],
  maxRows: number,
): Call[][] {
  const runs: Call[][] = [];
  const open = new Map<string, { run: Call[]; rows: number }>();
  for (const call of calls) {
    const rows = rowsOf(call.tensors);
    const key = rows === null ? null : trailingShapes(call.tensors);
    const place = key === null ? undefined : open.get(key);
    if (place !== undefined && place.rows + (rows as number) <= maxRows) {
      place.run.push(call);
      place.rows += rows as number;
      continue;
    }
    const run = [call];
    runs.push(run);
    if (key !== null) open.set(key, { run, rows: rows as number });
  }
  return runs;
}

function trailingShapes(tensors: Tensors): string {
  return Object.values(tensors)
    .map(({ shape }) => shape.slice(1).join())
    .join(';');
}

/** Joins the inputs of the calls of a run, which are not copied if it has one call. */
export function joinRows(calls: readonly Tensors[]): Tensors {
  const [first] = calls as [Tensors];
  if (calls.length === 1) return first;
  return mapTensors(first, (_, name) => joinTensors(calls.map((tensors) => tensors[name] as Tensor)));
}

function joinTensors(parts: readonly Tensor[]): Tensor {
  const [{ datatype, shape, data }] = parts as [Tensor];
  const rows = parts.reduce((sum, part) => sum + (part.shape[0] as number), 0);
  const size = [rows, ...shape.slice(1)];
  if (datatype === 'BYTES')
    return new Tensor(
      'BYTES',
      size,
      parts.flatMap((part) => part.data as TensorData['BYTES']),
    );
  const count = parts.reduce((sum, part) => sum + part.data.length, 0);
  const all = new (data.constructor as Uint8ArrayConstructor)(count);
  let at = 0;
  for (const part of parts) {
    all.set(part.data as Uint8Array, at);
    at += part.data.length;
  }
  return new Tensor(datatype as 'UINT8', size, all);
}

/** Whether each output of a run has a row for each row of its inputs. */
export function haveRows(outputs: Tensors, rows: number): boolean {
  return Object.values(outputs).every(({ shape }) => shape[0] === rows);
}

/** Splits outputs into those of calls with `counts` rows; the parts share their memory. */
export function splitRows(outputs: Tensors, counts: readonly number[]): Tensors[] {
  let at = 0;
  return counts.map((rows) => {
    const from = at;
    at += rows;
    return mapTensors(outputs, (tensor) => part(tensor, from, rows));
  });
}

function part({ datatype, shape, data }: Tensor, from: number, rows: number): Tensor {
  const [all = 1, ...rest] = shape;
  const size = data.length / all;
  const [begin, end] = [from * size, (from + rows) * size];
  const own = Array.isArray(data) ? data.slice(begin, end) : (data as Uint8Array).subarray(begin, end);
  return new Tensor(datatype, [rows, ...rest], own as TensorData[Datatype]);
}
