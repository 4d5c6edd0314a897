/** Writes JSON as Multi Model Server does: indented by two spaces, with one line feed at its end. */
import type { WriteAnswer } from '../../answer/koa-answers.js';

export const JSON_TYPE = 'application/json';

export function mmsJson(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
}

/** Answers with this value. Members that are undefined are left out. */
export function writeMmsJson(ctx: Parameters<WriteAnswer>[0], status: number, value: object): void {
  ctx.status = status;
  ctx.set('Content-Type', JSON_TYPE); // `ctx.type` would add a charset
  ctx.body = mmsJson(value);
}
