/** `multipart/form-data` bodies, read into one object of fields and files. */
import { badBody } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';
import type { UploadedFile } from '../api/types.js';
import type { InputFormat } from './body-format.js';
import { collectFields } from './form.js';
import { decodeText } from '../../protocol/text/charsets.js';
import { partsOf, type Part } from '../../protocol/text/multipart-parts.js';

type Field = string | UploadedFile;

/**
 * Returns fields as strings and files as {@link UploadedFile}; a repeated name becomes an array. @throws SERVE_BAD_BODY
 */
export function readMultipart(body: Buffer, contentType: string): Record<string, Field | Field[]> {
  try {
    return collectFields(fieldsOf(body, contentType));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw badBody(`The multipart body could not be read: ${asSentence(reason)}`, cause);
  }
}

function* fieldsOf(body: Buffer, contentType: string): Generator<[name: string, value: Field]> {
  for (const part of partsOf(body, contentType))
    yield [part.disposition.params.get('name') as string, valueOf(part)];
}

/** A part with a file name is a file, and so is one whose type is neither text nor JSON: decoding would destroy it. */
function valueOf({ disposition, contentType, content }: Part): Field {
  const filename = disposition.params.get('filename');
  if (filename === undefined && isText(contentType.value))
    return decodeText(content, contentType.params.get('charset') ?? '');
  return {
    filename: baseName(filename ?? ''),
    contentType: contentType.value || 'text/plain',
    data: new Uint8Array(content), // a copy
  };
}

function isText(type: string): boolean {
  return type === '' || type.startsWith('text') || type === 'application/json' || type.endsWith('+json');
}

/** Removes the folders that some clients send with a file name. */
function baseName(path: string): string {
  const name = path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
  return name === '.' || name === '..' ? '' : name;
}

export const FORMAT: InputFormat = {
  itemType: 'multipart/form-data',
  read: (body, { contentType }) => readMultipart(body, contentType),
};
