#!/usr/bin/env node
/** The command `model-archiver`, named as Multi Model Server's tool. */
import { runArchiver } from './archive/archiver.js';

process.exitCode = await runArchiver('model-archiver', process.argv.slice(2));
