/** A budget of memory: a number of bytes, or a share of what there is. */
import { NotAllowed, parseBytes } from './units.js';

export type Budget = { readonly bytes: number } | { readonly share: number };

/** Parses `2gb`, or `50%` of what there is. @throws NotAllowed */
export function parseBudget(raw: unknown): Budget {
  const percent = typeof raw === 'string' ? /^(\d+(?:\.\d+)?)\s*%$/.exec(raw.trim())?.[1] : undefined;
  const share = Number(percent) / 100;
  if (percent !== undefined && share > 0 && share <= 1) return { share };
  const bytes = percent === undefined ? sizeOf(raw) : 0;
  if (bytes > 0) return { bytes };
  throw new NotAllowed('a size above 0 such as 512mb or 2gb, or a share such as 50%');
}

/** The budget of memory of this size. */
export function bytesOf(budget: Budget, totalBytes: number): number {
  return 'bytes' in budget ? budget.bytes : Math.floor(budget.share * totalBytes);
}

function sizeOf(raw: unknown): number {
  try {
    return parseBytes(raw);
  } catch (error) {
    if (error instanceof NotAllowed) return 0; // refused in words of its own
    throw error;
  }
}
