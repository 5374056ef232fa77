/** The types of operations, call options, lists and streams. */

/** How an operation is sent; the rows are in `client/src/generated/operations.ts`. */
export interface OperationRow {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Without the prefix; parameters in braces. */
  readonly path: string;
  /** What follows the path parameters in a call. */
  readonly takes?: 'body' | 'query' | 'body and query';
  /** The member of the body whose items are filled in, instead of the body itself. */
  readonly each?: string;
  /** What the client fills in if it is omitted: in the body, or in the query if there is no body. */
  readonly fills?: readonly ('tenant_id' | 'namespace')[];
  /**
   * The field that identifies a repetition. The client generates a value, so that a retried request is executed once.
   */
  readonly key?: string;
  /** May be retried even if it may have been executed, in addition to methods that always may. */
  readonly isRepeatable?: true;
  /** The server may delay the response as long as `wait_ms` says. */
  readonly isParked?: true;
  /** Pagination of a list: by a cursor in a header or in the body, by offset, or by page number. */
  readonly pages?: 'cursor' | 'offset' | 'page' | 'changes';
  /** Undefined: JSON or nothing. */
  readonly answers?: 'text' | 'events';
}

/** Options of a single call, which override the settings of the client. */
export interface CallOptions {
  /** Aborts the call, including waits between attempts; it rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
  /** Time limit of one attempt, in milliseconds. */
  readonly timeoutMs?: number | undefined;
  /** Time limit of all attempts and the waits between them, in milliseconds. */
  readonly totalTimeoutMs?: number | undefined;
  /** Maximum number of retries; 0 for none. */
  readonly retries?: number | undefined;
  /** The tenant of this call. */
  readonly tenant?: string | undefined;
  /** Additional headers, such as `traceparent` or `x-request-id`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Options of a call that creates something. */
export interface CreationOptions extends CallOptions {
  /** Identifies repetitions of this call. Default: the key in the body, else a new one. */
  readonly idempotencyKey?: string | undefined;
}

/** One page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** The `cursor` of the next page; undefined on the last page, and for lists with page numbers. */
  readonly nextCursor?: string;
  readonly hasMore: boolean;
  /** The number of items on all pages, if the server counts them. */
  readonly total?: number;
}

/** A list: `await` returns its first page, `for await` iterates over the items of all pages. */
export interface List<T> extends PromiseLike<Page<T>>, AsyncIterable<T> {
  /** Iterates over the pages. */
  pages(): AsyncIterable<Page<T>>;
}

/** A server-sent event. */
export interface StreamEvent {
  /** The kind of event, such as `state` or `change`. */
  readonly event: string;
  /** The raw data, as JSON. */
  readonly data: string;
  /** Where to continue after it; '' until the stream has sent one. */
  readonly id: string;
}

/** The events of one connection, which is opened by the first read. */
export type EventStream = AsyncIterable<StreamEvent>;
