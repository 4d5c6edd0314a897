/** Documents by their relevance, at the paths of Cohere's, Jina's and other clients. Errors are those of OpenAI's form. */
import { taskPlan } from '../../call/task-call.js';
import { CALL_FAILURES } from '../../openapi/errors.js';
import { hasTask, operationsOf } from '../../openapi/operation.js';
import { callByPost, type Dialect } from '../dialect.js';
import file from './paths.json' with { type: 'json' };

const PATHS = Object.keys(file.paths);
const OPERATIONS = operationsOf(file).map((operation) => ({ ...operation, failures: CALL_FAILURES }));

export const rerank: Omit<Dialect, 'fail'> = {
  name: 'rerank',
  paths: new Map(PATHS.map((path) => [path, 'POST'])),
  claim: (context, models) =>
    PATHS.includes(context.path) ? callByPost(context, () => taskPlan(models, 'rerank', 'rerank')) : null,
  callPaths: ({ isMain, isDefaultVersion, task }) =>
    isMain && isDefaultVersion && task === 'rerank' ? PATHS.slice(0, 1).map((path) => ({ path })) : [],
  describe: (server) => (hasTask(server, 'rerank') ? OPERATIONS : []),
};
