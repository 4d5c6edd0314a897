/** `multipart/form-data` bodies, read with busboy into one object of fields and files. */
import busboy from '@fastify/busboy';
import { ServeError } from '../../protocol/errors.js';
import type { UploadedFile } from '../api/types.js';

type Field = string | UploadedFile;

/** Fields as strings, files as {@link UploadedFile}; a repeated name becomes an array. @throws SERVE_BAD_BODY */
export function readMultipart(body: Buffer, contentType: string): Promise<Record<string, Field | Field[]>> {
  return new Promise((resolve, reject) => {
    const fields: Record<string, Field | Field[]> = Object.create(null) as Record<string, Field | Field[]>;
    const fail = (cause: unknown): void => {
      const reason = cause instanceof Error ? cause.message : String(cause);
      reject(new ServeError('SERVE_BAD_BODY', `The multipart body could not be read: ${reason}`, { cause }));
    };
    try {
      const limits = { fieldSize: Infinity, fields: Infinity, fileSize: Infinity };
      const parser = new busboy.Busboy({ headers: { 'content-type': contentType }, limits });
      parser.on('field', (name, value) => add(fields, name, value));
      parser.on('file', (name, stream, filename, _encoding, mimeType) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('error', fail);
        // The library's types miss that `application/octet-stream` makes a file of a part without a filename.
        stream.on('end', () =>
          add(fields, name, {
            filename: filename ?? '',
            contentType: mimeType,
            data: new Uint8Array(Buffer.concat(chunks)),
          }),
        );
      });
      parser.on('error', fail);
      parser.on('finish', () => resolve({ ...fields }));
      parser.end(body);
    } catch (cause) {
      fail(cause);
    }
  });
}

function add(fields: Record<string, Field | Field[]>, name: string, value: Field): void {
  const before = fields[name];
  if (before === undefined) fields[name] = value;
  else if (Array.isArray(before)) before.push(value);
  else fields[name] = [before, value];
}
