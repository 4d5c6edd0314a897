/** Describes the paths of the page for the OpenAPI document. */
import { LIVE_PATH, PAGE_FILES_PATH } from '../../../../protocol/reserved-paths.js';
import { ServeError } from '../../../../protocol/errors.js';
import { BYTES, TEXT, type DescribedOperation } from '../../openapi/operation.js';

export const PAGE_OPERATIONS: readonly DescribedOperation[] = [
  {
    path: '/',
    method: 'get',
    operationId: 'getPage',
    description: 'The page of this server, for a client that likes HTML better than JSON.',
    auth: 'none',
    responses: {
      200: { description: 'The page.', content: { 'text/html': { schema: BYTES } } },
      default: { description: 'Another client gets the answer of a server without this page.' },
    },
  },
  {
    path: `${PAGE_FILES_PATH}/{name}`,
    method: 'get',
    operationId: 'getPageFile',
    description: 'A file of the page.',
    auth: 'none',
    parameters: [
      { name: 'name', in: 'path', required: true, description: 'The name of the file.', schema: TEXT },
    ],
    responses: { 200: { description: 'The file.' } },
    failures: [new ServeError('SERVE_NOT_FOUND')],
  },
  {
    path: LIVE_PATH,
    method: 'get',
    operationId: 'followServer',
    description: 'The data of the page: server-sent events, which end with the server.',
    auth: 'call',
    parameters: [
      {
        name: 'log',
        in: 'query',
        required: false,
        description: 'Sends the lines of the log instead.',
        schema: TEXT,
      },
    ],
    responses: { 200: { description: 'Events.', content: { 'text/event-stream': { schema: BYTES } } } },
    failures: [
      new ServeError('SERVE_FORBIDDEN'),
      new ServeError('SERVE_OVERLOADED'),
      new ServeError('SERVE_SHUTTING_DOWN'),
    ],
  },
];
