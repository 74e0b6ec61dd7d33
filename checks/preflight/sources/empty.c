/* Whether there is a C compiler. */
int main(void) { return 0; }
