/** Describes the body of the house's errors (`answer/house-error.ts`). */
import { ERRORS } from '../../../protocol/errors.js';
import { HTTP_STATUS } from '../socket/http-status.js';
import { TEXT, objectOf, type NamedSchema } from './operation.js';

/** The codes that clients receive. */
const CODES = Object.entries(HTTP_STATUS).flatMap(([code, status]) => (status === null ? [] : [code]));

const ISSUE = objectOf({
  path: { type: 'array', items: { anyOf: [TEXT, { type: 'integer' }] } },
  message: TEXT,
});

const ERROR_FIELDS = {
  code: { ...TEXT, enum: CODES },
  message: TEXT,
  requestId: TEXT,
  source: { ...TEXT, enum: [...new Set(Object.values(ERRORS).map(({ source }) => source))] },
  issues: { type: 'array', items: ISSUE },
} as const;

export const HOUSE_ERROR: NamedSchema = {
  name: 'Error',
  schema: objectOf({ error: objectOf(ERROR_FIELDS, ['code', 'message', 'requestId', 'source']) }),
};
