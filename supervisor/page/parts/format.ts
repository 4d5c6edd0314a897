/** Numbers, times and sizes as people read them. All are short, and of stable width in a table. */

/** `812 B`, `4.2 kB`, `1.3 GB`. */
export function bytes(value: number): string {
  return scaled(value, ['B', 'kB', 'MB', 'GB', 'TB']);
}

/** `950`, `1.2k`, `3.4M`. */
export function count(value: number): string {
  return scaled(value, ['', 'k', 'M', 'G']).replace(' ', '');
}

function scaled(value: number, units: readonly string[]): string {
  let [rest, unit] = [value, 0];
  while (rest >= 999.5 && unit < units.length - 1) [rest, unit] = [rest / 1000, unit + 1];
  return `${unit === 0 ? short(rest) : rest.toFixed(rest < 9.95 ? 1 : 0)} ${units[unit]}`.trim();
}

/** At most one decimal, and none that is zero. */
function short(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** `0.4 ms`, `23 ms`, `1.6 s`, `2 m 5 s`. */
export function duration(ms: number): string {
  if (ms < 9.95) return `${short(ms)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${short(ms / 1000)} s`;
  return age(ms);
}

/** Whole seconds: `8 s`, `2 m 5 s`, `10 m`, `3 h 20 m`, `4 d 2 h`. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const;
  const first = parts.findIndex(([number]) => number > 0);
  const shown = parts.slice(first, first + 2).filter(([number]) => number > 0);
  return shown.length === 0 ? '0 s' : shown.map((part) => part.join(' ')).join(' ');
}

/** The viewer's clock: `14:03:09`. */
export function clock(at: number): string {
  return new Date(at).toLocaleTimeString([], { hourCycle: 'h23' });
}

/** `1 worker`, `2 workers`. */
export function plural(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
