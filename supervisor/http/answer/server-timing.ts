/** Writes the value of the Server-Timing header. */

/** `queue;dur=1.20, run;dur=3.40` in ms, as the Server-Timing draft wants it. */
export function serverTiming({ queueMs, runMs }: { queueMs: number; runMs: number }): string {
  return `queue;dur=${twoDecimals(queueMs)}, run;dur=${twoDecimals(runMs)}`;
}

/** The same for a call that was refused before it ran. */
export function refusedTiming(queueMs: number): string {
  return `queue;dur=${twoDecimals(queueMs)}, run;dur=0`;
}

/** Writes ms with two decimals, from whole numbers, whose texts V8 keeps: `toFixed` takes several times as long. */
function twoDecimals(ms: number): string {
  const hundredths = Math.round(ms * 100);
  const rest = hundredths % 100;
  return `${(hundredths - rest) / 100}.${rest < 10 ? '0' : ''}${rest}`;
}
