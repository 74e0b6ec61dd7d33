/* Whether there is a compiler of C. */
int main(void) { return 0; }
