package dev.fieldmesh.device

import android.content.Context
import android.media.AudioAttributes
import android.os.VibrationEffect
import android.os.Vibrator
import android.speech.tts.TextToSpeech
import dev.fieldmesh.core.cue.Cue
import java.util.Locale

/** Gives a cue to the driver. */
fun interface Voice {
    fun say(cue: Cue)
}

/** Speaks cues and makes the phone shake, with the screen off too. [words] are in the language of the app. */
class SpokenVoice(context: Context, private val wanted: () -> Boolean, private val words: (Cue) -> String) :
    Voice,
    AutoCloseable {
    private val vibrator: Vibrator? = context.getSystemService(Vibrator::class.java)
    private var ready = false
    private val speech = TextToSpeech(context) { status -> ready = status == TextToSpeech.SUCCESS }

    init {
        speech.setAudioAttributes(
            AudioAttributes.Builder()
                .setUsage(AudioAttributes.USAGE_ASSISTANCE_NAVIGATION_GUIDANCE)
                .setContentType(AudioAttributes.CONTENT_TYPE_SPEECH)
                .build(),
        )
    }

    override fun say(cue: Cue) {
        vibrator?.vibrate(VibrationEffect.createWaveform(pattern(cue), NO_REPEAT))
        if (!ready || !wanted()) return
        speech.language = Locale.getDefault()
        // An older cue that is still being spoken is of no use any more.
        speech.speak(words(cue), TextToSpeech.QUEUE_FLUSH, null, cue.name)
    }

    override fun close() = speech.shutdown()

    /** Milliseconds off, on, off, on …: one for faster, two for slower, long ones for what happened. */
    private fun pattern(cue: Cue): LongArray = when (cue) {
        Cue.FASTER -> longArrayOf(0, 120)
        Cue.SLOWER -> longArrayOf(0, 120, 120, 120)
        Cue.HOLD -> longArrayOf(0, 40)
        Cue.GO -> longArrayOf(0, 500)
        Cue.DONE -> longArrayOf(0, 500, 200, 500)
        else -> longArrayOf(0, 200, 100, 200, 100, 200)
    }

    private companion object {
        const val NO_REPEAT = -1
    }
}
