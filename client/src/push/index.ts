/** Worker endpoints: receives the tasks that the engine delivers by POST. Needs only the Fetch API and Web Crypto. */

export { FatalError, RetryableError } from '../worker/errors.js';
export { ACCEPTED } from '../worker/run-handler.js';
export { createHandler, type PushApi, type PushOptions, type Receive } from './handler.js';
export { type FunctionUrlEvent, type FunctionUrlResult, toLambda } from './lambda.js';
