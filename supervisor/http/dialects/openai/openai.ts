/**
 * OpenAI's embeddings, which vector stores and agent frameworks call; and documents by their relevance, at the paths of
 * Cohere's, Jina's and other clients. The worker reads the body and writes the answer. Errors are those of OpenAI's form.
 */
import type { Task } from '../../../../protocol/wire/messages.js';
import { errorBody, exposedDetail, headersOfStatus, statusOf } from '../../answer/house-error.js';
import { taskPlan } from '../../call/task-call.js';
import { CALL_FAILURES } from '../../openapi/errors.js';
import { hasTask, operationsOf, type ApiFile } from '../../openapi/operation.js';
import { TEXT, objectOf } from '../../openapi/schemas.js';
import type { AnswerStyle } from '../../request/request-context.js';
import { callByPost, type Dialect } from '../dialect.js';
import embeddingsFile from './paths.json' with { type: 'json' };
import rerankFile from './rerank.json' with { type: 'json' };

const MODEL_HEADER = 'X-Banana-Model';

/** The house's errors with the fields that OpenAI's have besides. */
export const openAiStyle: Pick<Dialect, 'headers' | 'errorBody' | 'fail' | 'owns'> = {
  /** Clients configure any name for a server's only model: this is the true one. */
  headers: ({ model }): Record<string, string> => (model === null ? {} : { [MODEL_HEADER]: model.spec.name }),
  errorBody: {
    name: 'OpenAIError',
    schema: objectOf({ error: objectOf({ code: TEXT, message: TEXT, type: TEXT, param: {} }) }),
  },
  fail: failure,
  owns: (path) => path.startsWith('/v1/'),
};

function failure(
  ...[error, requestId, context]: Parameters<AnswerStyle['fail']>
): ReturnType<AnswerStyle['fail']> {
  const { code, issues, begun } = error;
  const status = statusOf(error);
  const detail = exposedDetail(error, context);
  const message = detail === '' ? error.message : `${error.message}\n${detail}`;
  const more = {
    type: status < 500 ? 'invalid_request_error' : 'server_error',
    param: issues[0]?.path.join('.') ?? null,
  };
  return {
    status,
    headers: { 'Content-Type': 'application/json', ...headersOfStatus(error) },
    body: errorBody({ code, message, issues, begun }, requestId, more),
  };
}

/** The calls of the models of a task, at the paths of a file, the best first. `format`: that of the workers. */
function taskDialect(name: string, task: Task, format: string, file: ApiFile): Dialect {
  const paths = Object.keys(file.paths);
  const operations = operationsOf(file).map((operation) => ({ ...operation, failures: CALL_FAILURES }));
  return {
    name,
    ...openAiStyle,
    paths: new Map(paths.map((path) => [path, 'POST'])),
    claim: (context, models) =>
      paths.includes(context.path) ? callByPost(context, () => taskPlan(models, task, format)) : null,
    callPaths: ({ isMain, isDefaultVersion, task: own }) =>
      isMain && isDefaultVersion && own === task ? paths.slice(0, 1).map((path) => ({ path })) : [],
    describe: (server) => (hasTask(server, task) ? operations : []),
    clientHeaders: { readable: [MODEL_HEADER] },
  };
}

export const openAi = taskDialect('openai', 'embedding', 'embeddings', embeddingsFile);
export const rerank = taskDialect('rerank', 'rerank', 'rerank', rerankFile);
