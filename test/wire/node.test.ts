import { join } from 'node:path';
import { WorkerProcess } from '../processes/worker/worker-process.js';
import { appFolder } from '../worker/app-folder.js';
import { testConversations } from './conversation.js';
import { CONVERSATIONS } from './conversations/index.js';

testConversations(CONVERSATIONS, 'node', { timeout: 240_000, skip: false }, (t, source) => ({
  worker: new WorkerProcess(t),
  app: join(appFolder(t, { 'app.mjs': source }), 'app.mjs'),
}));
