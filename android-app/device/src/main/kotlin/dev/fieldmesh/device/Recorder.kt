package dev.fieldmesh.device

import android.media.MediaRecorder
import java.io.File
import java.io.IOException

/** What records speech; one recording at a time. The caller holds the permission. */
interface Recorder {
    /** Begins to record to a file; [stuck] is called when it cannot go on. */
    @Throws(IOException::class)
    fun begin(to: File, stuck: () -> Unit)

    /** Ends it; whether the file has something to be heard. */
    fun end(): Boolean

    companion object {
        const val MEDIA_TYPE = "audio/mp4"
    }
}

/**
 * The phone's microphone, as AAC in MP4: 32 kbit/s, 240 kB a minute. It takes no part in the phone's audio focus, so
 * a cue is spoken meanwhile, is heard, and is in the recording.
 */
class MicrophoneRecorder : Recorder {
    private var running: MediaRecorder? = null

    @Suppress("TooGenericExceptionCaught") // MediaRecorder throws nothing narrower: in a call, or without a microphone
    override fun begin(to: File, stuck: () -> Unit) {
        var begun: MediaRecorder? = null
        try {
            @Suppress("DEPRECATION") // what replaces it came with Android 12
            val recorder = MediaRecorder().also { begun = it }
            recorder.setAudioSource(MediaRecorder.AudioSource.MIC)
            recorder.setOutputFormat(MediaRecorder.OutputFormat.MPEG_4)
            recorder.setAudioEncoder(MediaRecorder.AudioEncoder.AAC)
            recorder.setAudioChannels(1)
            recorder.setAudioSamplingRate(SAMPLES_PER_S)
            recorder.setAudioEncodingBitRate(BITS_PER_S)
            recorder.setOutputFile(to.path)
            recorder.setOnErrorListener { _, _, _ -> stuck() }
            recorder.prepare()
            recorder.start()
            running = recorder
        } catch (e: RuntimeException) {
            begun?.release()
            throw IOException("record: ${e.message}", e)
        } catch (e: IOException) {
            begun?.release()
            throw e
        }
    }

    override fun end(): Boolean {
        val recorder = running ?: return false
        running = null
        return try {
            recorder.stop()
            true
        } catch (_: RuntimeException) {
            false // nothing had come yet, by its documentation
        } finally {
            recorder.release()
        }
    }

    private companion object {
        const val SAMPLES_PER_S = 22_050
        const val BITS_PER_S = 32_000
    }
}
