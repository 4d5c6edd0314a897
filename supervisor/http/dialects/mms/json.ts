/** JSON as Multi Model Server writes it: two spaces, and one line feed at its end. */
import type { WriteAnswer } from '../../answer/koa-answers.js';

export const JSON_TYPE = 'application/json';

export function mmsJson(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
}

/** Answers with this. Members that are undefined are left out. */
export function writeMmsJson(ctx: Parameters<WriteAnswer>[0], status: number, value: object): void {
  ctx.status = status;
  ctx.set('Content-Type', JSON_TYPE); // `ctx.type` would name a charset beside it
  ctx.body = mmsJson(value);
}
