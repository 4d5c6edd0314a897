/**
 * The error of an input that a schema refuses: the schema of the app, or one of zod, valibot or arktype whose error the app
 * has let through. An app may also check its model's output so; then the wrong values are not in the input.
 */
import { isDeepStrictEqual } from 'node:util';
import { ServeError, type Issue } from '../../protocol/errors.js';
import type { SchemaIssue } from '../api/standard-schema.js';

/** Bounds of an answer: a list of a million wrong items has as many issues. */
const MOST_ISSUES = 100;
const MOST_MESSAGE_CHARS = 500;
const MOST_PARTS = 10;
const MOST_PART_CHARS = 100;

export function inputInvalid(given: readonly SchemaIssue[]): ServeError {
  const issues = issuesWithin(given);
  return new ServeError('SERVE_INPUT_INVALID', `The input is invalid: ${firstOf(issues, given.length)}.`, {
    issues,
  });
}

/** Returns the first issues, cut to what an answer may hold. */
export function issuesWithin(given: readonly SchemaIssue[]): readonly Issue[] {
  return Array.from(given.slice(0, MOST_ISSUES), issueOf);
}

/** Describes the first issues in one sentence, for clients that get no list. */
export function sentenceOf(given: readonly SchemaIssue[]): string {
  return firstOf(issuesWithin(given), given.length);
}

const MOST_SHOWN = 3;

function firstOf(issues: readonly Issue[], count: number): string {
  if (count === 0) return 'the schema gives no reason';
  const named = issues
    .slice(0, MOST_SHOWN)
    .map(({ path, message }) => `${path.join('.') || 'the value'}: ${message}`);
  const more = count > named.length ? ` (and ${count - named.length} more)` : '';
  return named.join('; ') + more;
}

/** `Array.from`, because the path of arktype is a subclass of Array whose `map` is another. */
function issueOf({ path = [], message }: SchemaIssue): Issue {
  return {
    path: Array.from(path, keyOf).slice(0, MOST_PARTS).map(shortened),
    message: String(message).slice(0, MOST_MESSAGE_CHARS),
  };
}

function keyOf(part: PropertyKey | { readonly key: PropertyKey }): string | number {
  const key = typeof part === 'object' ? part.key : part;
  return typeof key === 'number' && Number.isFinite(key) ? key : String(key);
}

function shortened(key: string | number): string | number {
  return typeof key === 'number' ? key : key.slice(0, MOST_PART_CHARS);
}

/**
 * Returns the error of a call whose input one of these values is, if the app let through an error of a schema library and
 * the value has what each of its issues says; else null. Never throws.
 */
export function invalidInputOf(thrown: unknown, inputs: readonly unknown[]): ServeError | null {
  try {
    const issues = issuesOf(thrown);
    if (issues === null || !inputs.some((input) => issues.every((issue) => holds(input, issue)))) return null;
    return inputInvalid(issues);
  } catch {
    return null; // the error, or the input, has a getter that throws
  }
}

/** Returns the values that an app may check: the whole input, and each field of a custom service's item. */
export function inputsOf(input: unknown): readonly unknown[] {
  const { item } = (typeof input === 'object' ? (input ?? {}) : {}) as { readonly item?: unknown };
  return typeof item === 'object' && item !== null ? [item, ...(Object.values(item) as unknown[])] : [input];
}

/** The fields by which the libraries describe the wrong value. */
interface LibraryIssue extends SchemaIssue {
  readonly code?: unknown;
  /** The value, of valibot, and of zod if it is told to. */
  readonly input?: unknown;
  /** The value, of arktype. */
  readonly data?: unknown;
  readonly expected?: unknown;
  readonly keys?: readonly string[];
  readonly values?: readonly unknown[];
  readonly minimum?: unknown;
  readonly maximum?: unknown;
  readonly inclusive?: unknown;
}

const LIBRARY_ERRORS: ReadonlySet<unknown> = new Set([
  'ZodError',
  '$ZodError',
  'ValiError',
  'TraversalError',
]);

function issuesOf(thrown: unknown): readonly LibraryIssue[] | null {
  if (typeof thrown !== 'object' || thrown === null) return null;
  const { name, issues, arkErrors } = thrown as Readonly<Record<string, unknown>>;
  const isOne = LIBRARY_ERRORS.has(name) || thrown.constructor.name === 'ArkErrors';
  const list = arkErrors ?? issues;
  if (!isOne || !Array.isArray(list) || list.length === 0) return null;
  return Array.from<LibraryIssue>(list);
}

/** Whether the input has the wrong value at the place of the issue. */
function holds(input: unknown, issue: LibraryIssue): boolean {
  const keys = Array.from(issue.path ?? [], keyOf);
  const last = keys.pop();
  let value = input;
  for (const key of keys) {
    if (!hasOwn(value, key)) return false;
    value = value[key];
  }
  if (last === undefined) return isWrong(value, issue);
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value) && typeof last === 'string') return false;
  if (hasOwn(value, last)) return isWrong(value[last], issue);
  // The object that lacks the key: of valibot in the path, of arktype as the value; zod leaves it out.
  const object = (issue.path?.at(-1) as { readonly input?: unknown }).input ?? issue.data;
  if (object !== undefined) return isDeepStrictEqual(object, value);
  // Of a choice, zod does not even tell whether it is missing: an answer of the model may have a wrong one.
  return issue.code === 'invalid_type' && isWrong(undefined, issue);
}

function hasOwn(value: unknown, key: string | number): value is Record<string | number, unknown> {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key);
}

/** Zod leaves the value out, so an issue that the value does not contradict counts as one about it. */
function isWrong(value: unknown, issue: LibraryIssue): boolean {
  if ('data' in issue) return isDeepStrictEqual(issue.data, value); // a library may have copied a list
  if ('input' in issue) return isDeepStrictEqual(issue.input, value);
  switch (issue.code) {
    case 'invalid_type':
      return isOfOtherType(value, issue);
    case 'invalid_value':
      return issue.values?.includes(value) === false;
    case 'unrecognized_keys':
      return issue.keys?.every((key) => hasOwn(value, key)) === true;
    case 'too_small':
    case 'too_big':
      return isBeyond(value, issue);
    case 'invalid_format':
      return typeof value === 'string';
    case 'custom':
      return (issue.path ?? []).length > 0; // else any place would fit, also that of an output
    default:
      return true;
  }
}

function isOfOtherType(value: unknown, { expected, message }: LibraryIssue): boolean {
  const isMissing = / received undefined$/.test(message);
  if (isMissing !== (value === undefined) && / received \w+$/.test(message)) return false;
  return typeof value !== expected && !(expected === 'array' && Array.isArray(value));
}

function isBeyond(value: unknown, { code, minimum, maximum, inclusive }: LibraryIssue): boolean {
  const isSized = typeof value === 'string' || Array.isArray(value);
  const size = isSized ? (value as ArrayLike<unknown>).length : Number(value);
  const limit = Number(code === 'too_small' ? minimum : maximum);
  if (size === limit) return inclusive === false;
  return code === 'too_small' ? size < limit : size > limit;
}
