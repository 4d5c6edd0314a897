/** Parses durations, sizes, numbers, choices and switches, and formats durations and sizes. */

const DURATION_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const SIZE_UNITS: Readonly<Record<string, number>> = {
  b: 1,
  kb: 1024,
  mb: 1024 ** 2,
  gb: 1024 ** 3,
};

/** Limit of setTimeout, about 24.8 days: a longer timer would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** A value was refused; the message lists the allowed values, in words that follow "give". */
export class NotAllowed extends Error {
  override readonly name = 'NotAllowed';
}

/** Reads any text that is not empty; `allowed` describes it. @throws NotAllowed */
export function parseText(raw: unknown, allowed: string): string {
  if (typeof raw !== 'string' || raw.trim() === '') throw new NotAllowed(allowed);
  return raw;
}

/** The parts of a comma-separated text, or of an array, trimmed; a part that is no text is empty. */
export function listOf(raw: unknown): string[] {
  const given: readonly unknown[] = typeof raw === 'string' ? raw.split(',') : Array.isArray(raw) ? raw : [];
  return given.map((one) => (typeof one === 'string' ? one.trim() : ''));
}

/** As `listOf`, of at least one part, all of which are allowed; `allowed` describes them. @throws NotAllowed */
export function partsOf(raw: unknown, isAllowed: (part: string) => boolean, allowed: string): string[] {
  const parts = listOf(raw);
  if (parts.length === 0 || !parts.every(isAllowed)) throw new NotAllowed(allowed);
  return parts;
}

/** Parses `500ms`, `30s`, `1.5m`, `1h` to ms; a number is ms already. @throws NotAllowed */
export function parseDurationMs(value: unknown): number {
  const ms = typeof value === 'number' ? value : withUnit(value, DURATION_UNITS, null);
  if (ms === null || !Number.isFinite(ms) || ms < 0 || ms > MAX_TIMER_MS) {
    throw new NotAllowed('a duration with a unit, such as 500ms, 30s or 5m, up to 24 days');
  }
  return ms;
}

/** As `parseDurationMs`, but above 0. @throws NotAllowed */
export function parsePositiveMs(value: unknown): number {
  const ms = parseDurationMs(value);
  if (ms <= 0) throw new NotAllowed('a duration above 0, such as 500ms, 30s or 5m');
  return ms;
}

/** Parses `10mb`, `512kb`, `1gb` (powers of 1024) to bytes; a bare number is bytes. @throws NotAllowed */
export function parseBytes(value: unknown): number {
  const bytes = typeof value === 'number' ? value : withUnit(value, SIZE_UNITS, 1);
  if (bytes === null || !Number.isFinite(bytes) || bytes < 0) {
    throw new NotAllowed('a size such as 512kb, 10mb or 1gb');
  }
  return Math.floor(bytes);
}

/** A whole number between `min` and `max`. @throws NotAllowed */
export function parseWhole(value: unknown, min: number, max: number): number {
  const number = typeof value === 'string' && /^\d+$/.test(value.trim()) ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isInteger(number) || number < min || number > max) {
    throw new NotAllowed(`a whole number from ${min} to ${max}`);
  }
  return number;
}

/** Returns `value` if it is one of `choices`. @throws NotAllowed */
export function parseChoice<T extends string>(value: unknown, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value);
  if (found === undefined) throw new NotAllowed(`one of ${choices.join(', ')}`);
  return found;
}

/** Parses a boolean, or `true`, `false`, `1`, `0` as text. @throws NotAllowed */
export function parseSwitch(value: unknown): boolean {
  if (value === true || value === 'true' || value === '1') return true;
  if (value === false || value === 'false' || value === '0') return false;
  throw new NotAllowed('true or false');
}

/** Formats a size for a sentence: `100 MB`, `1.5 KB`. */
export function formatBytes(bytes: number): string {
  const steps: [number, string][] = [
    [1024 ** 3, 'GB'],
    [1024 ** 2, 'MB'],
    [1024, 'KB'],
  ];
  const step = steps.find(([size]) => bytes >= size);
  return step === undefined ? `${bytes} bytes` : `${Number((bytes / step[0]).toFixed(1))} ${step[1]}`;
}

/** Formats a duration for a sentence: `350 ms`, `1.2 s`, `5 min`. */
export function formatMs(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 120_000 ? `${Number((ms / 1000).toFixed(1))} s` : `${Number((ms / 60_000).toFixed(1))} min`;
}

function withUnit(
  value: unknown,
  units: Readonly<Record<string, number>>,
  bare: number | null,
): number | null {
  if (typeof value !== 'string') return null;
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(value.trim());
  if (match === null) return null;
  const [, digits, unit = ''] = match;
  const number = Number(digits);
  if (unit === '') return number === 0 ? 0 : bare === null ? null : number * bare;
  const factor = units[unit.toLowerCase()];
  return factor === undefined ? null : number * factor;
}
