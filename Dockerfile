# The server, and nothing else: `make image` builds bin/aod and then this. There is no
# shell in the image; /aod is all that can be run in it.
FROM scratch
COPY bin/aod /aod
# The last two are for the commands that are run beside the server: docker exec … /aod ps
ENV AOD_DATA=/data \
    AOD_LISTEN=0.0.0.0:7070 \
    AOD_SERVER=http://127.0.0.1:7070 \
    AOD_TOKEN_FILE=/data/server/token
VOLUME /data
EXPOSE 7070
# Root, since the engine's socket is root's: see docs/docker.md.
USER 0:0
# Asks this container's own server, with the token from /data.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/aod", "units", "--quiet"]
ENTRYPOINT ["/aod"]
CMD ["serve"]
