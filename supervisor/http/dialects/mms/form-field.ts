/**
 * Finds one field in the beginning of a form, with the parser that reads the whole form in the worker. A field that is
 * not complete by then is not found. Malformed forms are left to the worker, which reports them.
 */
import { decodeText, paramsOf } from '../../../../protocol/text/header-params.js';
import { partsOf } from '../../../../protocol/text/multipart-parts.js';

/** The field's first value; `absent` if it is not there; `more` if more of the body is needed to know. */
export type FoundField = { readonly value: string } | 'absent' | 'more';

/** `isWhole`: the body ends where `prefix` does. */
export type FindField = (prefix: Buffer, isWhole: boolean) => FoundField;

/** Returns null if a body of this type is not a form. */
export function fieldFinder(contentType: string, name: string): FindField | null {
  const type = paramsOf(contentType).value;
  if (type === 'multipart/form-data') return (prefix) => inMultipart(prefix, contentType, name);
  if (type === 'application/x-www-form-urlencoded')
    return (prefix, isWhole) => inUrlEncoded(prefix, isWhole, name);
  return null;
}

function inMultipart(prefix: Buffer, contentType: string, name: string): FoundField {
  try {
    for (const { disposition, contentType: type, content } of partsOf(prefix, contentType))
      if (disposition.params.get('name') === name)
        return { value: decodeText(content, type.params.get('charset') ?? '') };
    return 'absent';
  } catch {
    return 'more'; // the part ends with the prefix, or it is malformed
  }
}

const [AND, EQUALS] = [0x26, 0x3d];

function inUrlEncoded(prefix: Buffer, isWhole: boolean, name: string): FoundField {
  for (let start = 0; ;) {
    const and = prefix.indexOf(AND, start);
    if (and < 0 && !isWhole) return 'more';
    const pair = prefix.subarray(start, and < 0 ? prefix.length : and);
    const value = mayBeNamed(pair, name) ? new URLSearchParams(pair.toString()).get(name) : null;
    if (value !== null) return { value };
    if (and < 0) return 'absent';
    start = and + 1;
  }
}

/** Whether the pair may have this name: every character of a name is one byte, or three if it is escaped. */
function mayBeNamed(pair: Buffer, name: string): boolean {
  const equals = pair.indexOf(EQUALS);
  const bytes = equals < 0 ? pair.length : equals;
  return bytes >= name.length && bytes <= 3 * name.length;
}
