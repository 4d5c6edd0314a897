/** Random texts of any code points. */
import fc from 'fast-check';

const SURROGATES_START = 0xd800;
const SURROGATES = 0x800;
const CODE_POINTS = 0x110000;

/** fast-check's own `unit: 'binary'` takes 0.7 s of CPU for a table of all code points. */
const codePoint = fc
  .integer({ min: 0, max: CODE_POINTS - SURROGATES - 1 })
  .map((index) => String.fromCodePoint(index < SURROGATES_START ? index : index + SURROGATES), indexOf);

function indexOf(character: unknown): number {
  const point = typeof character === 'string' ? character.codePointAt(0) : undefined;
  if (point === undefined || String.fromCodePoint(point) !== character) throw new Error('not one code point');
  if (point < SURROGATES_START) return point;
  if (point < SURROGATES_START + SURROGATES) throw new Error('half of a surrogate pair');
  return point - SURROGATES;
}

/** Texts without lone surrogates, such as `__proto__` among them. */
export function anyText(maxLength?: number): fc.Arbitrary<string> {
  return fc.string({ unit: codePoint, ...(maxLength !== undefined && { maxLength }) });
}
