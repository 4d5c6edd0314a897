/** Writes answers of the Open Inference Protocol: JSON, with the tensors in it or, as raw bytes, behind it. */
import { escapeNonAscii } from '../../../protocol/text/charsets.js';
import { ServeError } from '../../../protocol/errors.js';
import { shown, type Tensor } from '../../../protocol/values/tensor.js';
import { elementsText } from './elements.js';
import { bytesOfTensor } from './raw-data.js';
import type { WantedOutputs } from './request.js';

/** The fields of an answer beside its outputs. */
export interface AnswerHead {
  readonly model: string;
  readonly version: string;
  /** The request's; left out if it is empty. */
  readonly id: string;
  /** Text beyond ASCII is escaped, because the client breaks it. */
  readonly asciiJson: boolean;
}

export interface Answer {
  readonly contentType: string;
  /** The length of the JSON if raw bytes follow it; null if nothing does. */
  readonly jsonBytes: number | null;
  readonly body: Buffer;
}

/** @throws SERVE_HTTP_ERROR with the status 400 if the client asked for what the app did not return, or JSON cannot carry */
export function writeAnswer(
  head: AnswerHead,
  outputs: ReadonlyMap<string, Tensor>,
  wanted: WantedOutputs,
): Answer {
  const raw: Uint8Array[] = [];
  const texts = wantedOutputs(outputs, wanted).map(([name, tensor, isBinary]) => {
    const sentence = (text: string): string => `Output ${shown(name)}: ${text}.`;
    if (!isBinary) {
      const elements = elementsText(tensor, (text) => refusal(sentence(text)));
      return outputText(name, tensor, `"data":[${elements}]`);
    }
    const bytes = bytesOfTensor(tensor, (text) => new ServeError('SERVE_OUTPUT_INVALID', sentence(text)));
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

function refusal(message: string): ServeError {
  return new ServeError('SERVE_HTTP_ERROR', message, { status: 400 });
}
