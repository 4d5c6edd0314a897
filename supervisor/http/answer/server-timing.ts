/** Formats the Server-Timing header: `queue;dur=1.20, run;dur=3.40`, in ms. */

export function serverTiming({ queueMs, runMs }: { queueMs: number; runMs: number }): string {
  return `queue;dur=${twoDecimals(queueMs)}, run;dur=${twoDecimals(runMs)}`;
}

/** Server-Timing of a call that was refused before it ran. */
export function refusedTiming(queueMs: number): string {
  return `queue;dur=${twoDecimals(queueMs)}, run;dur=0`;
}

/** Writes ms with two decimals. Built from integers, whose strings V8 caches: `toFixed` takes several times as long. */
function twoDecimals(ms: number): string {
  const hundredths = Math.round(ms * 100);
  const rest = hundredths % 100;
  return `${(hundredths - rest) / 100}.${rest < 10 ? '0' : ''}${rest}`;
}
