/** Shows an error in place of a page that fails to render. */

import { Component, type ReactNode } from 'react';
import { Button } from '../components/button.tsx';
import { ErrorBox } from '../components/error-box.tsx';

interface Props {
  readonly children: ReactNode;
  /** The address: another one resets the error. */
  readonly place: string;
}

interface State {
  readonly error: unknown;
  readonly place: string;
}

export class FailureBoundary extends Component<Props, State> {
  override state: State = { error: undefined, place: this.props.place };

  static getDerivedStateFromError(error: unknown): Partial<State> {
    return { error };
  }

  static getDerivedStateFromProps(props: Props, state: State): Partial<State> | null {
    return props.place === state.place ? null : { error: undefined, place: props.place };
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    return (
      <div>
        <h1>Something went wrong on this page</h1>
        <ErrorBox error={this.state.error} />
        <Button onClick={() => location.reload()}>Reload</Button>
      </div>
    );
  }
}
