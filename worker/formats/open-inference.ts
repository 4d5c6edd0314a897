/**
 * Calls of the Open Inference Protocol V2: the app gets its inputs as tensors by name, and its outputs leave as such.
 * What the client asked for, with its id, is kept from the request for the answer.
 */
import { badBody, badOutput, refusal } from '../../protocol/errors.js';
import { splitHeaderLines } from '../../protocol/text/headers.js';
import type { Call } from '../../protocol/wire/messages.js';
import { shown, type Signature, type Tensor } from '../../protocol/values/tensor.js';
import type { CallParams } from '../api/types.js';
import type { DialectFormat } from './body-format.js';
import { writeJson } from './json.js';
import { outputsOf } from './open-inference/outputs.js';
import { readRequest, type InferRequest, type WantedOutputs } from './open-inference/request.js';
import { checkInputs } from './open-inference/signed-inputs.js';
import { errorText, Reply } from './reply.js';
import { escapeNonAscii } from '../../protocol/text/charsets.js';
import { elementsText } from './open-inference/elements.js';
import { bytesOfTensor } from './open-inference/raw-data.js';

/** Length of the JSON at the beginning of a body with raw tensors. */
const JSON_BYTES_HEADER = 'Inference-Header-Content-Length';

/** Reads a request without having read one: everything is wanted, as JSON. */
const NO_REQUEST: InferRequest = { id: '', inputs: {}, params: {}, wanted: { named: null, binary: false } };

/** `signature`: null for an app that has none. */
export function openInferenceExchange(call: Call, signature: Signature | null) {
  let request = NO_REQUEST;
  return {
    /** The parameters of the request that are the app's. */
    get params(): CallParams {
      return request.params;
    },

    read(body: Buffer): InferRequest['inputs'] {
      request = readRequest(body, jsonBytesOf(call.headers), signature);
      if (signature !== null) checkInputs(request.inputs, signature);
      return request.inputs;
    },

    write(reply: Reply): Reply {
      const { head, body } = reply;
      if (body.kind === 'stream')
        throw refusal('This app streams its answer; a call of its own route gets it.');
      if (head.status >= 400) return errorReply(reply, call);
      if (body.kind === 'bytes')
        throw refusal(
          'This app answers with a body of its own, not with tensors; a call of its own route gets it.',
        );
      const params = new URLSearchParams(call.dialectParams);
      const [model, version] = [params.get('model') ?? '', params.get('version') ?? ''];
      const about = { model, version, id: request.id, asciiJson: call.asciiJson };
      const answer = writeAnswer(about, outputsOf(body.value, signature), request.wanted);
      const { contentType, jsonBytes, body: bytes } = answer;
      const own = jsonBytes === null ? [] : [JSON_BYTES_HEADER, String(jsonBytes)];
      const headers = [...(head.headers === '' ? [] : [head.headers]), ...own].join('\n');
      return new Reply({ status: head.status, contentType, headers, phrase: '' }, { kind: 'bytes', bytes });
    },
  };
}

/** An error that the app answered itself keeps its status and headers, in the shape of the protocol. */
function errorReply(answer: Reply, call: Call): Reply {
  const bytes = Buffer.from(writeJson({ error: errorText(answer) }, call).body);
  return new Reply({ ...answer.head, contentType: 'application/json' }, { kind: 'bytes', bytes });
}

/** Null without the header. @throws SERVE_BAD_BODY if it is no length */
function jsonBytesOf(headers: string): number | null {
  const name = JSON_BYTES_HEADER.toLowerCase();
  const values = splitHeaderLines(headers).filter(([other]) => other.toLowerCase() === name);
  if (values.length === 0) return null;
  const text = values.map(([, value]) => value).join(', ');
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw badBody(`${JSON_BYTES_HEADER} must be a whole number of bytes, not ${shown(text)}.`);
}

/** The fields of an answer beside its outputs. */
interface AnswerHead {
  readonly model: string;
  readonly version: string;
  /** The request's; left out if it is empty. */
  readonly id: string;
  /** Text beyond ASCII is escaped, because the client breaks it. */
  readonly asciiJson: boolean;
}

/**
 * `jsonBytes`: the length of the JSON if raw bytes follow it; null if nothing does.
 * @throws SERVE_HTTP_ERROR with the status 400 if the client asked for what the app did not return, or JSON cannot carry
 */
export function writeAnswer(
  head: AnswerHead,
  outputs: ReadonlyMap<string, Tensor>,
  wanted: WantedOutputs,
): { readonly contentType: string; readonly jsonBytes: number | null; readonly body: Buffer } {
  const raw: Uint8Array[] = [];
  const texts = wantedOutputs(outputs, wanted).map(([name, tensor, isBinary]) => {
    const sentence = (text: string): string => `Output ${shown(name)}: ${text}.`;
    if (!isBinary) {
      const elements = elementsText(tensor, (text) => refusal(sentence(text)));
      return outputText(name, tensor, `"data":[${elements}]`);
    }
    const bytes = bytesOfTensor(tensor, (text) => badOutput(sentence(text)));
    raw.push(bytes);
    return outputText(name, tensor, `"parameters":{"binary_data_size":${bytes.length}}`);
  });
  const json = Buffer.from(answerText(head, texts));
  if (raw.length === 0) return { contentType: 'application/json', jsonBytes: null, body: json };
  const body = Buffer.concat([json, ...raw]);
  return { contentType: 'application/octet-stream', jsonBytes: json.length, body };
}

/** The outputs to send in the order of the request, or all in the app's, each with its encoding. */
function wantedOutputs(
  outputs: ReadonlyMap<string, Tensor>,
  { named, binary }: WantedOutputs,
): (readonly [name: string, tensor: Tensor, isBinary: boolean])[] {
  if (named === null) return [...outputs].map(([name, tensor]) => [name, tensor, binary]);
  return [...named].map(([name, isBinary]) => {
    const tensor = outputs.get(name);
    if (tensor !== undefined) return [name, tensor, isBinary];
    const names = [...outputs.keys()].map(shown).join(', ');
    throw refusal(`The model returned no output ${shown(name)}; it returned ${names || 'none'}.`);
  });
}

function outputText(name: string, { datatype, shape }: Tensor, data: string): string {
  return `{"name":${JSON.stringify(name)},"datatype":"${datatype}","shape":[${shape.join(',')}],${data}}`;
}

function answerText({ model, version, id, asciiJson }: AnswerHead, outputs: readonly string[]): string {
  const fields = { model_name: model, model_version: version, ...(id === '' ? {} : { id }) };
  const text = `${JSON.stringify(fields).slice(0, -1)},"outputs":[${outputs.join(',')}]}`;
  return asciiJson ? escapeNonAscii(text) : text;
}

export const FORMAT: DialectFormat = {
  itemRefusal:
    'This model is a custom service of Multi Model Server, which takes no tensors; call it at /predictions/{model_name}.',
  exchange: (call, { signature = null }) => openInferenceExchange(call, signature),
};
