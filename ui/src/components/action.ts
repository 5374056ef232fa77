/** An action of the user on the server: sends it, reports its result, and has the page read again. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef } from 'react';
import { flushSync } from 'react-dom';
import { useLiveState } from '../api/live.tsx';
import { ActionError, actionErrorOf, unreachable } from '../api/outcome.ts';
import { isLeaving } from '../lib/leaving.ts';
import { isEngineThere } from '../lib/there.ts';
import { errorText } from './error-box.tsx';
import { releaseLists } from './steady.ts';
import { useToast } from './toasts.tsx';

export interface Action<Input> {
  readonly run: (input: Input) => void;
  readonly isBusy: boolean;
  /** Null before the first failure, and while it runs again. */
  readonly error: unknown;
  readonly reset: () => void;
}

export interface ActionOptions<Result, Input = void> {
  /** The toast after success; undefined: none. */
  readonly done?: (result: Result, input: Input) => ReactNode;
  /** What the page does after success, such as closing a dialog. */
  readonly onDone?: (result: Result, input: Input) => void;
  /** A refusal may have changed something, too. */
  readonly isReadAfterFailure?: boolean;
}

/**
 * If the engine may be unreachable, a probe is sent first: a browser cannot tell a request that was never sent from one
 * whose answer was lost.
 *
 * A component that reads `error` shows it; otherwise a failure is shown as a toast.
 *
 * @param act sends the request
 */
export function useAction<Input, Result>(
  act: (input: Input) => PromiseLike<Result>,
  options: ActionOptions<Result, Input> = {},
): Action<Input> {
  const tell = useToast();
  const queries = useQueryClient();
  const live = useLiveState();
  const isErrorShown = useRef(false);
  const mutation = useMutation({
    mutationFn: async (input: Input) => {
      try {
        const isKnown = isLeaving() || (live === 'live' && navigator.onLine);
        if (!isKnown && !(await isEngineThere())) throw unreachable();
        return await act(input);
      } catch (error) {
        throw actionErrorOf(error);
      }
    },
    onSuccess: async (result, input) => {
      const told = options.done?.(result, input);
      if (told !== undefined) tell(told);
      // Flushed first, so that what it closes, such as the page of a deleted object, is not read again.
      flushSync(() => options.onDone?.(result, input));
      await queries.invalidateQueries();
      // Behind the task that hands the answers to the components.
      setTimeout(releaseLists);
    },
    onError: (error) => {
      if (!isErrorShown.current) tell(errorText(error), { isFailure: true });
      const isUnclear = error instanceof ActionError && error.isUnclear;
      if (isUnclear || options.isReadAfterFailure) void queries.invalidateQueries();
    },
  });
  // A component that is gone shows nothing.
  useEffect(
    () => () => {
      isErrorShown.current = false;
    },
    [],
  );
  const { mutate, isPending, error, reset } = mutation;
  isErrorShown.current = false;
  return {
    run: mutate,
    isBusy: isPending,
    get error() {
      isErrorShown.current = true;
      return error;
    },
    reset,
  };
}
