/** Something that a person does on the server: runs it, tells of it, and has the page read again. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useRef } from 'react';
import { flushSync } from 'react-dom';
import { useLiveState } from '../api/live.tsx';
import { ActionError, actionErrorOf, unreachable } from '../api/outcome.ts';
import { isEngineThere } from '../lib/there.ts';
import { messageOf } from './error-box.tsx';
import { useToast } from './toasts.tsx';

export interface Action<Input> {
  readonly run: (input: Input) => void;
  readonly isBusy: boolean;
  /** Null before the first failure, and while it runs again. */
  readonly error: unknown;
  readonly reset: () => void;
}

/**
 * Where the engine may be away it is asked first whether it is there, since a browser does not tell a request that
 * reached nobody from one whose answer was lost.
 *
 * Who looks at `error` shows it; where nobody does, a failure is told as a toast.
 *
 * @param act what is sent
 * @param options.done what is told when it is done; undefined: nothing
 * @param options.onDone what the page does then, such as closing a dialog
 */
export function useAction<Input, Result>(
  act: (input: Input) => PromiseLike<Result>,
  options: {
    readonly done?: (result: Result, input: Input) => ReactNode;
    readonly onDone?: (result: Result, input: Input) => void;
  } = {},
): Action<Input> {
  const tell = useToast();
  const queries = useQueryClient();
  const live = useLiveState();
  const isErrorShown = useRef(false);
  const mutation = useMutation({
    mutationFn: async (input: Input) => {
      try {
        const isKnown = live === 'live' && navigator.onLine;
        if (!isKnown && !(await isEngineThere())) throw unreachable();
        return await act(input);
      } catch (error) {
        throw actionErrorOf(error);
      }
    },
    onSuccess: async (result, input) => {
      const told = options.done?.(result, input);
      if (told !== undefined) tell(told);
      // What is closed by it, as of something that is gone now, is not read again.
      flushSync(() => options.onDone?.(result, input));
      await queries.invalidateQueries();
    },
    onError: (error) => {
      if (!isErrorShown.current) tell(messageOf(error), { isFailure: true });
      if (error instanceof ActionError && error.isUnclear) void queries.invalidateQueries();
    },
  });
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
