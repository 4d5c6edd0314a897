/** Calls in the Open Inference Protocol, with tensors in the JSON or as bytes behind it, and their answers. */
import assert from 'node:assert/strict';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { once } from 'node:events';

export interface SentTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly datatype: string;
  /** Bytes go behind the JSON. */
  readonly data: readonly unknown[] | Buffer;
  readonly parameters?: object;
}

export interface InferRequest {
  readonly id?: string;
  readonly inputs: readonly SentTensor[];
  readonly outputs?: readonly object[];
  readonly parameters?: object;
}

export interface GotTensor {
  readonly shape: readonly number[];
  readonly datatype: string;
  /** Bytes, if they came behind the JSON. */
  readonly data: unknown[] | Buffer;
}

export interface V2Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The JSON of the answer, at its beginning. */
  readonly json: Readonly<Record<string, unknown>>;
  readonly outputs: Readonly<Record<string, GotTensor>>;
  /** The text of an error; undefined without. */
  readonly error: unknown;
}

/** The body of a call, and the header of a body with bytes. */
export function encoded({ inputs, ...rest }: InferRequest): {
  body: Buffer;
  headers: Record<string, string>;
} {
  const raw: Buffer[] = [];
  const tensors = inputs.map(({ data, parameters, ...tensor }) => {
    if (!Buffer.isBuffer(data)) return { ...tensor, ...(parameters && { parameters }), data };
    raw.push(data);
    return { ...tensor, parameters: { ...parameters, binary_data_size: data.length } };
  });
  const json = Buffer.from(JSON.stringify({ ...rest, inputs: tensors }));
  const headers: Record<string, string> =
    raw.length === 0 ? {} : { 'Inference-Header-Content-Length': String(json.length) };
  return { body: Buffer.concat([json, ...raw]), headers };
}

/** `path`: such as `/v2/models/m/infer`. */
export async function infer(
  { url }: { readonly url: string },
  path: string,
  asked: InferRequest,
  headers: Record<string, string> = {},
): Promise<V2Answer> {
  const { body, headers: own } = encoded(asked);
  return ask(url, path, { method: 'POST', body, headers: { ...own, ...headers } });
}

export interface Asked {
  readonly method?: string;
  readonly body?: Buffer | string;
  readonly headers?: Record<string, string>;
}

/** Sends a request with no headers but these, Host and Content-Length. */
export async function ask(
  url: string,
  path: string,
  { method = 'GET', body, headers = {} }: Asked = {},
): Promise<V2Answer> {
  const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
  const sent = httpRequest(url + path, { method, headers: { ...headers, ...length } });
  sent.end(body);
  const [got] = (await once(sent, 'response')) as [IncomingMessage];
  return decoded(got.statusCode ?? 0, got.headers, Buffer.concat((await got.toArray()) as Buffer[]));
}

/** @throws SyntaxError if the answer does not begin with JSON */
function decoded(status: number, headers: IncomingHttpHeaders, body: Buffer): V2Answer {
  const given = headers['inference-header-content-length'];
  const jsonBytes = given === undefined ? body.length : Number(given);
  const text = body.subarray(0, jsonBytes).toString();
  const json = (text === '' ? {} : JSON.parse(text)) as Readonly<Record<string, unknown>>;
  return {
    status,
    headers,
    body,
    json,
    outputs: tensorsIn(json, body.subarray(jsonBytes)),
    error: json['error'],
  };
}

interface OutputFields {
  readonly name: string;
  readonly shape: readonly number[];
  readonly datatype: string;
  readonly data?: unknown[];
  readonly parameters?: { readonly binary_data_size?: number };
}

function tensorsIn(
  { outputs = [] }: Readonly<Record<string, unknown>>,
  raw: Buffer,
): Record<string, GotTensor> {
  let left = raw;
  const tensors: Record<string, GotTensor> = {};
  for (const { name, shape, datatype, data, parameters } of outputs as OutputFields[]) {
    const size = parameters?.binary_data_size ?? 0;
    tensors[name] = { shape, datatype, data: data ?? left.subarray(0, size) };
    left = left.subarray(data === undefined ? size : 0);
  }
  return tensors;
}

/** The bytes of numbers. */
export function int32(...values: number[]): Buffer {
  return Buffer.from(Int32Array.from(values).buffer);
}

export function float32(...values: number[]): Buffer {
  return Buffer.from(Float32Array.from(values).buffer);
}

/** The bytes of a BYTES tensor: each element behind its length. */
export function strings(...values: (string | Buffer)[]): Buffer {
  return Buffer.concat(
    values.flatMap((value) => {
      const bytes = Buffer.from(value as string);
      const length = Buffer.alloc(4);
      length.writeUInt32LE(bytes.length);
      return [length, bytes];
    }),
  );
}

/** The input that tells the fixture app `tensors` how to answer. */
export function way(name: string): SentTensor {
  return { name: 'way', shape: [1], datatype: 'BYTES', data: [name] };
}

interface Described {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly number[];
}

interface Picture {
  readonly batch: number;
  readonly channels: number;
  readonly height: number;
  readonly width: number;
}

/**
 * Reads the pages of a model as a client for pictures does, such as NVIDIA's image_client.py: one input of three dimensions behind
 * those of the batch, in an order that the configuration names, and one output that is a list. @throws AssertionError
 */
export async function pictureOf(url: string, model: string): Promise<Picture> {
  const { json: metadata } = await ask(url, `/v2/models/${model}`);
  const { json: config } = await ask(url, `/v2/models/${model}/config`);
  const [input, ...otherInputs] = metadata['inputs'] as [Described, ...Described[]];
  const [output, ...otherOutputs] = metadata['outputs'] as [Described, ...Described[]];
  const [configured, ...others] = config['input'] as [{ format: string }, ...object[]];
  assert.deepEqual([...otherInputs, ...otherOutputs, ...others], []);
  const batch = config['max_batch_size'] as number;
  const behindBatch = (shape: readonly number[]): readonly number[] => shape.slice(batch > 0 ? 1 : 0);
  assert.ok(behindBatch(output.shape).filter((size) => size > 1).length < 2, 'the output is a list');
  assert.equal(output.datatype, 'FP32');
  const sizes = behindBatch(input.shape);
  assert.equal(sizes.length, 3);
  assert.ok(['FORMAT_NCHW', 'FORMAT_NHWC'].includes(configured.format), configured.format);
  const [a, b, c] = sizes as [number, number, number];
  return configured.format === 'FORMAT_NHWC'
    ? { batch, channels: c, height: a, width: b }
    : { batch, channels: a, height: b, width: c };
}
