/** Keeps a fault of one part of the page from emptying the rest. */

import { html } from 'htm/preact';
import { Component, type ComponentChildren } from 'preact';

interface Guarded {
  /** The words in the place of the part. */
  words?: string;
  children?: ComponentChildren;
}

/** Shows its part, or words with a button if the part fails. The part gets another chance with new values. */
export class Guard extends Component<Guarded, { fault?: Error | undefined }> {
  override componentDidCatch(fault: Error) {
    this.setState({ fault });
  }
  override componentWillReceiveProps() {
    if (this.state.fault) this.setState({ fault: undefined });
  }
  override render({ words = 'Not shown', children }: Guarded) {
    const { fault } = this.state;
    if (!fault) return children;
    const again = () => this.setState({ fault: undefined });
    return html`<span class="problem" role="alert">${words}: ${fault.message} <button class="quiet" onClick=${again}>Try again</button></span>`;
  }
}
