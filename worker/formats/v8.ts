/** Values of programs that call the app as a function: as V8 writes them, in both directions. A stream has one value per item. */
import { readValue, writeValue } from '../../protocol/values/v8-values.js';
import { ServeError } from '../../protocol/errors.js';
import { mediaType } from '../../protocol/text/headers.js';
import { problemOfTensor, Tensor, type Datatype, type TensorData } from '../api/tensor.js';
import type { DialectFormat, Exchange } from './body-format.js';
import { errorText } from './error-text.js';
import { PLAIN_HEAD, Reply, type ReplyBody } from './reply.js';

const EXCHANGE: Exchange = {
  isOfProgram: true,
  read: (body) => readValue(body).value,
  write(reply) {
    const { head, body } = reply;
    if (head.status >= 400) {
      const message = errorText(reply) || undefined;
      throw new ServeError('SERVE_HTTP_ERROR', message, { status: head.status });
    }
    if (body.kind === 'stream')
      return new Reply(PLAIN_HEAD, { kind: 'stream', iterator: itemsOf(body.iterator) });
    return new Reply(PLAIN_HEAD, {
      kind: 'bytes',
      bytes: written(valueOf(body, head.contentType), 'output'),
    });
  },
};

/** The value of a whole answer; a body of JSON or text is read, because the caller sees no content type. */
function valueOf(body: Exclude<ReplyBody, { kind: 'stream' }>, contentType: string): unknown {
  if (body.kind !== 'bytes') return body.value;
  const type = mediaType(contentType);
  if (type === 'application/json') return JSON.parse(Buffer.from(body.bytes).toString()) as unknown;
  return type.startsWith('text/') ? Buffer.from(body.bytes).toString() : body.bytes;
}

type Items = (ReplyBody & { kind: 'stream' })['iterator'];

/** Each item stands behind its length, because the wire cuts a stream anywhere. */
function itemsOf(iterator: Items): AsyncIterator<unknown> {
  return {
    async next() {
      const step = await iterator.next();
      if (step.done === true) return step;
      try {
        return { done: false, value: withLength(written(step.value, 'item')) };
      } catch (error) {
        await iterator.return?.(); // the stream ends here, though the app has not failed
        throw error;
      }
    },
    async return() {
      await iterator.return?.();
      return { done: true, value: undefined };
    },
  };
}

function written(value: unknown, name: string): Buffer {
  return writeValue(value, name, 'SERVE_OUTPUT_INVALID');
}

function withLength(bytes: Buffer): Buffer {
  const length = Buffer.allocUnsafe(4);
  length.writeUInt32LE(bytes.length, 0);
  return Buffer.concat([length, bytes]);
}

export const FORMAT: DialectFormat = {
  itemRefusal: 'A custom service of Multi Model Server takes bytes of HTTP, not values of a program.',
  exchange: (_call, signature) => (signature === null ? EXCHANGE : OF_TENSORS),
};

/** A model that describes its inputs wants tensors, which cross as their fields. */
const OF_TENSORS: Exchange = {
  ...EXCHANGE,
  read(body) {
    const { value } = readValue(body);
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value) || ArrayBuffer.isView(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, asTensor(one)]));
  },
};

function asTensor(value: unknown): unknown {
  const { datatype, shape, data } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (problemOfTensor(datatype, shape, data) !== null) return value;
  return new Tensor(datatype as Datatype, shape as number[], data as TensorData[Datatype]);
}
