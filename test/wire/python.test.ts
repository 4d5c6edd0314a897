import { needs } from '../helpers/needs.js';
import { pythonWorkerOf } from '../processes/worker/python-process.js';
import { ownCode } from '../processes/worker/version-sensitive.js';
import { testConversations } from './conversation.js';
import { CONVERSATIONS } from './conversations/index.js';

const OPTIONS = ownCode({ timeout: 240_000, skip: needs('python3') });

testConversations(CONVERSATIONS, 'python', OPTIONS, pythonWorkerOf);
